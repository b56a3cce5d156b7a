"""The tokenizers of other libraries, which give the ids that those give."""
