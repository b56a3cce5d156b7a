"""An inspection as one HTML file that a browser opens from anywhere, without a network.

    write       ``write_page``: puts the parts below and the data into one file
    template.html, page.css, labels.json (every word of the page, in English and Chinese)
    base.js     words, elements, arrow keys       sentence.js  who looks at whom, on the sentence
    heads.js    the heads of every layer          open_head.js one head, large
    search.js   step by step: alternatives        beam.js      the tree of beam search
    encoder.js  labels, tags, what mattered       main.js      the page itself

The scripts are plain JavaScript without a library. They are joined in the order of
``write.SCRIPTS`` and see each other's functions.
"""

from dragoman.lens.page.write import write_page

__all__ = ["write_page"]
