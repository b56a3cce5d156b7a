"""Conversion of our model folders for other libraries, verified by comparing outputs.

targets        the libraries, and the conversion
huggingface    a folder for Hugging Face's transformers
counterpart    the equivalent class there
ctranslate     a folder for CTranslate2
onnx           a folder of ONNX graphs
graphs         the graphs, as modules
run_onnx       the program that runs them, copied into the folder
limits         the settings that a target supports
probe          the proof: the same logits and the same texts on both sides
eight_bits     our own folder, in 8 bits
"""
