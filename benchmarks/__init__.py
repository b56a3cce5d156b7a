"""Us and our peers side by side, on the same machine, in the same minutes: ratios.

python -m benchmarks                    training and decoding, with defaults
python -m benchmarks training           tokens/s of a training step, against torch.nn.Transformer
python -m benchmarks decoding [MODEL]   tokens/s of decoding, against Hugging Face's MarianMT class
python -m benchmarks multi30k           train by a recipe and score: BLEU, with command and versions
"""
