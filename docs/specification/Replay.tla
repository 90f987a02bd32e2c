------------------------------- MODULE Replay -------------------------------
\* Behaviours of Packages in which each state says by which step it was reached.
EXTENDS Packages, TLC

VARIABLE step

Noted(note) == step' = note

\* Few steps are possible after a package has ended. So clients cancel seldom, and packages seldom expire.
Seldom == step'[1] \in {"Cancel", "CancelOne", "Expire"} => TLCGet("level") % 9 = 0

ReplayInit == Init /\ step = <<"Start">>
ReplayNext == Steps(Noted) /\ Seldom
Behaviours == ReplayInit /\ [][ReplayNext]_<<vars, step>>
=============================================================================
