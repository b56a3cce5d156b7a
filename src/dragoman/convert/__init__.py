"""Model folders of other libraries, written from ours and proven.

targets        the libraries, and the conversion
huggingface    a folder for Hugging Face's transformers
counterpart    which class a model becomes there
ctranslate     a folder for CTranslate2
onnx           a folder of ONNX graphs
graphs         the graphs, as modules
run_onnx       the program that runs them, copied into the folder
limits         what of a config a target can express
probe          the proof: the same logits and the same texts on both sides
eight_bits     our own folder, in 8 bits
"""
