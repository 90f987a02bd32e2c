"""Developers' tools: they generate documents and test data from the protocol's messages. No release contains them."""
