"""Measuring retrieval: sets of documents, queries and judgments through the pipeline that agents use."""
