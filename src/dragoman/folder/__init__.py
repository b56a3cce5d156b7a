"""The model folder: all that answering needs, what training writes, and those of other libraries.

    config.json          format number, architecture, default decoding, hashes of the other files
    model.safetensors    the weights, a matrix that several places share stored once
    tokenizer.json       for both languages; or tokenizer.src.json and tokenizer.tgt.json
    huggingface/         in their place what a folder of Hugging Face had (`origin.py`)
    README.md            the model card
    training/            what resuming needs; loading a model does not look into it

`open_folder` (`opening.py`) reads any folder once: ours, one of Hugging Face or Marian as it is
(`foreign/`, `tokenizers/`), and peft's adapters (`adapters.py`). What it returns is passed to
all code that needs it. `format.py` writes ours.

Nothing is unpickled. A folder either loads whole, every weight used and every weight set, or is
rejected with one sentence. The config holds hashes of the tokenizers, of the weights and of its own
architecture, so that a flipped bit or a file of another model is noticed.
"""
