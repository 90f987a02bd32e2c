"""What the master does when it is asked. The same code on every adapter: ports in, protocol messages out."""
