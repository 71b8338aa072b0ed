"""Memory in and out of folders and files: the same reading and writing on both sides.

Reading is pure (`documents`, `reading`, `headings`, `front_matter`, `knowledge_graph`, `naming`):
relative paths and bytes come in, documents and refusals come out. Only `sources` and `folder` touch
a disk.
"""
