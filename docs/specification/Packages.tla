------------------------------ MODULE Packages ------------------------------
\* Packages of one account, from their start until the account is charged: the fold, the leases and the quota.
\* docs/specification.md explains this file, and says what it leaves out. Tests replay its behaviours on the master.
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Packages,     \* the packages of the account
  Count,        \* how many tasks each package has
  ChunkSize,    \* how many tasks a chunk has at most
  Quota,        \* how much compute time the account has, in units
  Deliveries,   \* a chunk is lost after this many deliveries
  Faults,       \* how many faults may happen, in all
  Losable       \* whether the queue may lose messages

VARIABLES
  head,         \* what the master has stored of each package, with the committed results
  slices,       \* the slices that the account has granted to each package, by their numbers
  charge,       \* what the account has charged for each package; Unpaid if the package is not settled
  queue,        \* the messages in the queue; a worker has those that are leased
  zombies,      \* leases that have ended although their workers go on
  faults        \* how many faults may still happen

vars == <<head, slices, charge, queue, zombies, faults>>

Tasks == 1..Count
Cost(t) == IF t = 1 THEN 2 ELSE 1     \* the time of a task with all its tries, including killed ones
None == <<>>                          \* in place of a result that does not exist yet
Lost == <<0, 0>>                      \* the result of a task whose workers were lost; other results: <<gen, attempt>>
Unpaid == -1

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Least(S) == CHOOSE t \in S : \A u \in S : t <= u
RECURSIVE Sum(_, _)
Sum(f, S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN f[x] + Sum(f, S \ {x})

RECURSIVE Chunks(_)                   \* a set of tasks, cut into runs of at most ChunkSize tasks
Chunks(S) == IF S = {} THEN {} ELSE
  LET first == Least(S)
      chunk == {t \in S : t < first + ChunkSize /\ first..t \subseteq S}
  IN {chunk} \cup Chunks(S \ chunk)

-----------------------------------------------------------------------------
\* The fold: how an event changes a head h. The tasks of the open ranges are outstanding.

Running(h) == h.state = "running"
Finished(h) == {t \in Tasks : h.result[t] # None}
Outstanding(h) == UNION {r.tasks : r \in h.open}
Rest(h) == h.uncut \cup Outstanding(h)
Spent(h) == h.used >= h.reserved      \* the reserve is used up: nothing is cut or sent

Queue(h, new) == IF new = {} THEN h ELSE  \* every new range has a new generation
  [h EXCEPT !.gen = @ + 1,
            !.open = @ \cup {[tasks |-> r.tasks, gen |-> h.gen + 1, sent |-> FALSE, losses |-> r.losses] : r \in new}]

End(h, state) == IF ~Running(h) THEN h ELSE
  [h EXCEPT !.state = state, !.open = {}, !.uncut = {}, !.wanted = 0, !.paused = FALSE, !.late = FALSE,
            !.stopping = IF state = "quota" THEN {} ELSE @ \cup Outstanding(h)]

\* The open ranges after the tasks S have left the ranges in hit. A report about generation gen shows that gen was sent.
Without(h, hit, S, gen) == (h.open \ hit) \cup
  UNION {{[r EXCEPT !.tasks = c, !.sent = @ \/ r.gen = gen] : c \in Chunks(r.tasks \ S)} : r \in hit}

Commit(h, t, gen, result, cost) ==    \* the first result of an outstanding task, of any generation
  LET hit == {r \in h.open : t \in r.tasks}
  IN IF hit = {} THEN h
     ELSE [h EXCEPT !.open = Without(h, hit, {t}, gen), !.result[t] = result, !.used = @ + cost]

ChargeStopped(h, t) ==                \* the time of a stopped task: its result is not wanted any more
  IF t \notin h.stopping THEN h
  ELSE [h EXCEPT !.used = @ + Cost(t), !.stopping = @ \ {t}, !.paid = @ \cup {t}]

TakeBack(h, S, gen, losses, more) ==  \* tasks of this generation are cut again
  LET hit == {r \in h.open : r.gen = gen /\ r.tasks \cap S # {}}
      alone(c) == Cardinality(c) = 1 /\ \A r \in h.open : r.tasks # c
      again(r) == {[tasks |-> c, losses |-> IF alone(c) THEN 0 ELSE Max(losses, r.losses) + more] : c \in Chunks(r.tasks \cap S)}
  IN Queue([h EXCEPT !.open = Without(h, hit, S, gen)], UNION {again(r) : r \in hit})

GiveBack(h, S, gen, losses, cost) ==
  LET counts == S \cap h.stopping # {} \/ \E r \in h.open : r.gen = gen /\ r.tasks \cap S # {}
      back == TakeBack(h, S, gen, losses, 0)
      time == IF counts THEN cost ELSE 0
  IN [back EXCEPT !.stopping = @ \ S, !.used = @ + time, !.returned = @ + time]

Close(h, S, gen) ==                   \* each task that was not reported counts one more loss
  LET back == TakeBack(h, S, gen, 0, 1) IN [back EXCEPT !.stopping = @ \ S]

Halves(S) == LET low == {t \in S : t < Least(S) + (Cardinality(S) + 1) \div 2} IN {low, S \ low} \ {{}}

Lose(h, S, gen) ==                    \* the chunk S was delivered too often
  LET hit == {r \in h.open : r.gen = gen /\ r.tasks \cap S # {}}
      halves == {[tasks |-> c, losses |-> 0] : c \in UNION {Halves(r.tasks) : r \in hit}}
  IN IF Cardinality(S) > 1 THEN Queue([h EXCEPT !.open = @ \ hit], halves)
     ELSE IF hit = {} THEN h ELSE Commit(h, Least(S), gen, Lost, 0)

Clear(h, S) ==                        \* no worker has had the tasks S of this package, which has ended
  [h EXCEPT !.stopping = @ \ S, !.cancelled = IF h.state = "cancelled" THEN @ \cup (S \cap h.stopping) ELSE @]

CancelTask(h, t) == IF ~Running(h) \/ t \notin Rest(h) THEN h ELSE
  [h EXCEPT !.open = Without(h, {r \in h.open : t \in r.tasks}, {t}, 0), !.uncut = @ \ {t}, !.cancelled = @ \cup {t},
            !.stopping = IF t \in h.uncut THEN @ ELSE @ \cup {t}]

Grant(h, number, amount, exhausted) ==
  IF ~Running(h) \/ number # h.next \/ (amount = 0 /\ h.wanted = 0) THEN h
  ELSE IF amount > 0 THEN [h EXCEPT !.wanted = 0, !.exhausted = FALSE, !.reserved = @ + amount, !.next = @ + 1]
  ELSE IF ~exhausted THEN [h EXCEPT !.wanted = 0, !.exhausted = FALSE, !.paused = TRUE]
  ELSE LET empty == [h EXCEPT !.wanted = 0, !.exhausted = TRUE] IN IF Spent(h) THEN End(empty, "quota") ELSE empty

\* What each fold does after its events: it cuts chunks, completes the package, and requests a slice.
Refill(h) == IF Spent(h) THEN h ELSE
  Queue([h EXCEPT !.uncut = {}], {[tasks |-> c, losses |-> 0] : c \in Chunks(h.uncut)})
Complete(h) == IF Rest(h) = {} /\ h.used <= h.reserved THEN End(h, "completed") ELSE h
Wanted(h) == LET free == h.reserved - h.used IN
  IF ~Running(h) \/ h.paused \/ free > 0 THEN 0
  ELSE IF Rest(h) = {} THEN -free
  ELSE IF h.exhausted THEN Max(1, -free) ELSE 1 - free
Ask(h) == IF h.wanted > 0 THEN h ELSE [h EXCEPT !.wanted = Wanted(h)]
Fold(h) == Ask(Complete(Refill(h)))

First == Fold([state |-> "running", uncut |-> Tasks, open |-> {}, gen |-> 0, result |-> [t \in Tasks |-> None],
  cancelled |-> {}, stopping |-> {}, late |-> FALSE, settled |-> FALSE,
  used |-> 0, reserved |-> 0, next |-> 1, wanted |-> 0, paused |-> FALSE, exhausted |-> FALSE,
  paid |-> {}, returned |-> 0])      \* only the invariants use paid and returned

-----------------------------------------------------------------------------
\* What masters, the queue, workers and clients do. A master may lose the answer to an effect; it then repeats the effect.

Save(p, h) == head' = [head EXCEPT ![p] = Fold(h)]
Fault(happens) == /\ happens => faults > 0
                  /\ faults' = IF happens THEN faults - 1 ELSE faults

Held(p) == Sum(slices[p], DOMAIN slices[p])
Reserved == Sum([p \in Packages |-> Held(p)], Packages)
Charged == Sum(charge, {p \in Packages : charge[p] # Unpaid})
Free == Quota - Charged - Reserved

Reserve(p, lost) == LET h == head[p] IN
  /\ h.wanted > 0
  /\ Fault(lost)
  /\ LET known == h.next \in DOMAIN slices[p]           \* the answer to the first request was lost
         amount == IF known THEN slices[p][h.next] ELSE Min(h.wanted, Free)
         unsettled == {q \in Packages : ~head[q].settled}
         allSpent == /\ \A q \in unsettled : Spent(head[q])
                     /\ Reserved <= Sum([q \in unsettled |-> head[q].reserved], unsettled)
     IN /\ slices' = IF known \/ amount = 0 THEN slices ELSE [slices EXCEPT ![p] = Append(@, amount)]
        /\ IF lost THEN UNCHANGED head ELSE Save(p, Grant(h, h.next, amount, Reserved <= Held(p) \/ allSpent))
  /\ UNCHANGED <<charge, queue, zombies>>

Put(q, p, r) ==                       \* a message that is sent twice is in the queue twice
  LET same(n) == \E m \in q : m.package = p /\ m.tasks = r.tasks /\ m.gen = r.gen /\ m.copy = n
      copy == CHOOSE n \in 1..(Cardinality(q) + 1) : ~same(n) /\ \A k \in 1..(n - 1) : same(k)
  IN [package |-> p, tasks |-> r.tasks, gen |-> r.gen, losses |-> r.losses, copy |-> copy,
      receives |-> 0, at |-> "waiting", left |-> {}]

Send(p, lost) == LET h == head[p]
                     unsent == {r \in h.open : ~r.sent} IN
  /\ unsent # {} /\ ~Spent(h)
  /\ Fault(lost)
  /\ queue' = queue \cup {Put(queue, p, r) : r \in unsent}
  /\ IF lost THEN UNCHANGED head ELSE Save(p, [h EXCEPT !.open = {[r EXCEPT !.sent = TRUE] : r \in @}])
  /\ UNCHANGED <<slices, charge, zombies>>

Settle(p, lost) == LET h == head[p] IN
  /\ ~Running(h) /\ ~h.settled /\ (h.stopping = {} \/ h.late)
  /\ Fault(lost)
  /\ LET pays == IF charge[p] # Unpaid THEN charge[p] ELSE Min(h.used, Held(p) + Free)
     IN /\ charge' = [charge EXCEPT ![p] = pays]
        /\ slices' = [slices EXCEPT ![p] = <<>>]         \* the account gets the rest back
        /\ IF lost THEN UNCHANGED head ELSE Save(p, [h EXCEPT !.settled = TRUE, !.reserved = pays, !.stopping = {}])
  /\ UNCHANGED <<queue, zombies>>

\* A message is a hint: the head says which of its tasks are still wanted.
Left(m) == LET h == head[m.package] IN m.tasks \cap UNION {r.tasks : r \in {r \in h.open : r.gen = m.gen}}

Retrieve(m) == LET p == m.package
                   h == head[p]
                   deaths == m.losses + m.receives      \* workers that were lost with the chunk
                   drop(next) == queue' = queue \ {m} /\ Save(p, next) IN
  /\ m.at = "waiting"
  /\ IF Left(m) = {} THEN
        drop(IF ~Running(h) /\ ~h.settled /\ m.receives = 0 THEN Clear(h, m.tasks) ELSE h)
     ELSE IF deaths >= Deliveries THEN drop(Lose(h, m.tasks, m.gen))
     ELSE IF Free + h.reserved - h.used <= 0 THEN drop(GiveBack(h, Left(m), m.gen, deaths, 0))
     ELSE /\ queue' = (queue \ {m}) \cup {[m EXCEPT !.at = "leased", !.receives = @ + 1, !.left = Left(m)]}
          /\ UNCHANGED head
  /\ UNCHANGED <<slices, charge, zombies, faults>>

\* A worker may publish a result several times. The master cannot distinguish a zombie from a live worker.
Leased == {m \in queue : m.at = "leased"}
Publish(m, t) == /\ m \in Leased \cup zombies
                 /\ t \in m.left
                 /\ Save(m.package, ChargeStopped(
                      Commit(head[m.package], t, m.gen, <<m.gen, m.losses + m.receives>>, Cost(t)), t))
                 /\ UNCHANGED <<slices, charge, queue, zombies, faults>>

Done(m, kept) ==                      \* the lease of m is over; kept: the master dies before it deletes the message
  /\ queue' = IF kept THEN queue ELSE queue \ {m}
  /\ zombies' = IF kept THEN zombies ELSE zombies \ {m}

CloseLease(m, kept) == LET p == m.package IN
  /\ m \in Leased \cup zombies
  /\ Fault(kept \/ Left(m) # {})      \* it is a fault to close a lease with tasks that are outstanding
  /\ Save(p, Close(head[p], m.tasks, m.gen))
  /\ Done(m, kept)
  /\ UNCHANGED <<slices, charge>>

GiveUp(m) == LET p == m.package IN    \* the worker will not run the tasks, reports a unit of time, and closes its lease
  /\ m \in Leased \cup zombies
  /\ Fault(TRUE)
  /\ Save(p, Close(GiveBack(head[p], m.left, m.gen, m.losses + m.receives - 1, 1), m.tasks, m.gen))
  /\ Done(m, FALSE)
  /\ UNCHANGED <<slices, charge>>

EndLease(m, zombie) ==                \* the worker is dead, or it is only slow and goes on
  /\ m \in Leased
  /\ Fault(zombie)
  /\ queue' = (queue \ {m}) \cup {[m EXCEPT !.at = IF m.receives < Deliveries THEN "waiting" ELSE "dead", !.left = {}]}
  /\ zombies' = IF zombie THEN zombies \cup {m} ELSE zombies
  /\ UNCHANGED <<head, slices, charge>>

ReportLost(m) == /\ m.at = "dead"
                 /\ queue' = queue \ {m}
                 /\ Save(m.package, Lose(head[m.package], m.tasks, m.gen))
                 /\ UNCHANGED <<slices, charge, zombies, faults>>

LoseMessage(m) == /\ Losable /\ Fault(TRUE)
                  /\ queue' = queue \ {m}
                  /\ UNCHANGED <<head, slices, charge, zombies>>

Happens(p, h) == head[p] # Fold(h) /\ Save(p, h) /\ UNCHANGED <<slices, charge, queue, zombies, faults>>
Cancel(p) == Running(head[p]) /\ Happens(p, End(head[p], "cancelled"))
CancelOne(p, t) == Happens(p, CancelTask(head[p], t))
Expire(p) == Rest(head[p]) # {} /\ Happens(p, End(head[p], "expired"))
Wake(p) == Running(head[p]) /\ Happens(p, [head[p] EXCEPT !.paused = FALSE])
Wait(p) == LET h == head[p] IN        \* two lease times pass: no stopped task reports its time any more
  /\ h.stopping # {}
  /\ Happens(p, IF Running(h) THEN [h EXCEPT !.stopping = {}, !.paused = FALSE] ELSE [h EXCEPT !.late = TRUE])

-----------------------------------------------------------------------------
Init == /\ head = [p \in Packages |-> First]
        /\ slices = [p \in Packages |-> <<>>]
        /\ charge = [p \in Packages |-> Unpaid]
        /\ queue = {} /\ zombies = {} /\ faults = Faults

\* Each step passes its name and its arguments to Note. Only the replay uses these notes.
Steps(Note(_)) ==
  \/ \E p \in Packages, lost \in BOOLEAN :
       \/ Reserve(p, lost) /\ Note(<<"Reserve", p, lost>>)
       \/ Send(p, lost) /\ Note(<<"Send", p, lost>>)
       \/ Settle(p, lost) /\ Note(<<"Settle", p, lost>>)
  \/ \E m \in queue :
       \/ Retrieve(m) /\ Note(<<"Retrieve", m>>)
       \/ ReportLost(m) /\ Note(<<"ReportLost", m>>)
       \/ LoseMessage(m) /\ Note(<<"LoseMessage", m>>)
       \/ \E zombie \in BOOLEAN : EndLease(m, zombie) /\ Note(<<"EndLease", m, zombie>>)
  \/ \E m \in Leased \cup zombies :
       \/ \E t \in m.left : Publish(m, t) /\ Note(<<"Publish", m, t>>)
       \/ \E kept \in BOOLEAN : CloseLease(m, kept) /\ Note(<<"CloseLease", m, kept>>)
       \/ GiveUp(m) /\ Note(<<"GiveUp", m>>)
  \/ \E p \in Packages :
       \/ Cancel(p) /\ Note(<<"Cancel", p>>)
       \/ \E t \in Tasks : CancelOne(p, t) /\ Note(<<"CancelOne", p, t>>)
       \/ Expire(p) /\ Note(<<"Expire", p>>)
       \/ Wake(p) /\ Note(<<"Wake", p>>)
       \/ Wait(p) /\ Note(<<"Wait", p>>)

Ignore(note) == TRUE
Next == Steps(Ignore)

\* These steps happen in the end if they stay possible. Workers need not publish anything, and packages need not expire.
Fairness ==
  /\ \A p \in Packages : /\ WF_vars(Reserve(p, FALSE)) /\ WF_vars(Send(p, FALSE)) /\ WF_vars(Settle(p, FALSE))
                         /\ WF_vars(Wake(p)) /\ WF_vars(Wait(p))
  /\ WF_vars(\E m \in queue : Retrieve(m))
  /\ WF_vars(\E m \in queue : EndLease(m, FALSE))
  /\ WF_vars(\E m \in queue : ReportLost(m))

Spec == Init /\ [][Next]_vars /\ Fairness
Patient == Spec /\ \A p \in Packages : WF_vars(Expire(p))

-----------------------------------------------------------------------------
\* What holds in every state.

EachTaskHasOnePlace == \A p \in Packages : LET h == head[p] IN
  /\ h.uncut \cap Outstanding(h) = {} /\ Finished(h) \cap h.cancelled = {}
  /\ Rest(h) \cap (Finished(h) \cup h.cancelled) = {}
  /\ \A r, s \in h.open : r = s \/ r.tasks \cap s.tasks = {}
  /\ Running(h) => Rest(h) \cup Finished(h) \cup h.cancelled = Tasks

NoTaskIsLost == \A p \in Packages : \A r \in head[p].open :
  r.sent => \E m \in queue : m.package = p /\ m.gen = r.gen /\ r.tasks \subseteq m.tasks

Time(S) == Sum([t \in Tasks |-> Cost(t)], S)
ChargedExactlyOnce == \A p \in Packages : LET h == head[p] IN
  /\ h.used = Time({t \in Tasks : h.result[t] \notin {None, Lost}}) + Time(h.paid) + h.returned
  /\ h.paid \cap Finished(h) = {}
  /\ h.settled => charge[p] = h.reserved /\ charge[p] <= h.used
  /\ h.settled /\ h.state = "completed" => charge[p] >= h.used - Time(h.paid) - h.returned

TheQuotaIsAWall ==
  /\ Free >= 0
  /\ \A p \in Packages : charge[p] = Unpaid => head[p].reserved <= Held(p)

\* What holds in every step.
Step == \A p \in Packages : LET h == head[p]
                                n == head'[p] IN
  /\ \A t \in Tasks : h.result[t] # None => n.result[t] = h.result[t]
  /\ ~Running(h) => n.state = h.state /\ n.result = h.result
  /\ charge[p] # Unpaid => charge'[p] = charge[p]
  /\ n.used >= h.used
ResultsAndEndsAreFinal == [][Step]_vars

\* What holds in the end.
EveryPackageEnds == \A p \in Packages : <>head[p].settled
=============================================================================
