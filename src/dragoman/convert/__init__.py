"""Model folders of other libraries, written from ours and proven.

targets        the libraries, and the conversion
huggingface    a Marian-shaped folder for Hugging Face's transformers
ctranslate     a folder for CTranslate2
limits         what of a config a target can express
probe          the proof: the same logits and the same greedy translations on both sides
"""
