"""Text in, text out: the objects that ``dragoman.load`` returns.

    loading       from a folder to the object of its own kind
    translation   the Translator: lines to lines, scores of pairs
    generation    the Generator: prompts to the texts that go on from them
    classification  the Classifier: texts to labels
    tagging       the Tagger: words to tags, and to the spans that they form
    folders       what all of them read from a folder
    options       how to decode
    ids           the part of a translator that knows no text
    reading       an encoder that reads rows of ids, whatever head it has
    lines         a line to chunks of ids that the model can take, and its translation put together
    words         the words of a text, which are what is tagged
    prompts       a prompt to ids, and generated ids to text, piece by piece
    results       what a line's translation is: text, scores, alternatives, alignment

``dragoman.decode`` searches, ``dragoman.text`` tokenises; here they meet.
"""
