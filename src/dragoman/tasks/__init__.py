"""Text in, text out: the objects that ``dragoman.load`` returns.

    translation   the Translator: lines to lines, scores of pairs
    options       how to decode
    lines         a line to chunks of ids that the model can take, and its translation put together
    results       what a line's translation is: text, scores, alternatives, alignment

``dragoman.decode`` searches, ``dragoman.text`` tokenises; here they meet.
"""
