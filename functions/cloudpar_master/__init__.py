"""The master: client, worker and account services over ports. Read core.fold first: everything else carries it out."""
