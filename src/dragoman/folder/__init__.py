"""The model folder: its format, reading and writing it, and reading folders of other libraries.

    config.json          format number, architecture, default decoding, hashes of the other files
    model.safetensors    the weights; a shared matrix is stored once
    tokenizer.json       for both languages; or tokenizer.src.json and tokenizer.tgt.json
    huggingface/         instead of tokenizers, the files of a Hugging Face folder (`origin.py`)
    README.md            the model card
    training/            the state for resuming; loading a model ignores it

`open_folder` (`opening.py`) reads any folder once: ours, an unconverted one of Hugging Face or
Marian (`foreign/`, `tokenizers/`), and peft's adapters (`adapters.py`). Its result is passed to all
code that needs the folder. `format.py` writes ours.

Nothing is unpickled. A folder either loads completely, with every weight used and every parameter
set, or is rejected with one sentence. The config contains hashes of the tokenizers, the weights and
its own architecture, so that a flipped bit or a file of another model is noticed.
"""
