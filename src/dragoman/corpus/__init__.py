"""Corpora of pairs before they are trained on: checked, cleaned, split, sampled.

rules      what can be wrong with a pair
checking   which pairs of a corpus break which rule, and how many are left
choosing   pairs drawn: a sample; training, validation and test sets that share no sentence
writing    some pairs of a corpus in new files
"""
