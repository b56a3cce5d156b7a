"""Pictures of what a model does.

    attention   which source token each target token looked at, as a PNG (``plot_alignment``)
    heatmap     the grid itself
    fonts       a font for each label, also where none for Chinese is installed

Needs matplotlib, which ``pip install 'dragoman[plot]'`` brings; nothing is drawn at import.
"""
