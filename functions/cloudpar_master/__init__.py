"""The master. Its layers are core, ports, services, adapters and server. To understand it, read `core.fold` first."""
