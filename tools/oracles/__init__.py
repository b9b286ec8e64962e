"""Measurements of frameworks: one file for each, above what they share; tools/extract_oracles.py writes the results.

`tables` has the frameworks, the operands, the cells and the documents. `arrays`, `casts`, `assignments` and `missing`
are the kinds of documents that several frameworks have.
"""
