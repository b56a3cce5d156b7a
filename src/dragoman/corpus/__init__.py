"""Corpora of pairs before training: checked, cleaned, split, sampled.

rules      what can be wrong with a pair
checking   which pairs of a corpus break which rule, and how many are left
choosing   random samples; training, validation and test sets that share no sentence
writing    selected pairs of a corpus in new files
"""
