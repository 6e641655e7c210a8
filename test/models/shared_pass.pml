/* A pass that two processes share (src/uct/layout/peer/pass_board.h): a requester posts it in a slot of the owner's board,
 * both take pieces of it, the requester from the front and the owner from the end, and the requester returns when all pieces
 * are in memory. Each statement between two of the code's atomic operations is a step of its own; requester and owner may
 * die between any two. A second requester finds the slot free, or taken by a dead one.
 *
 * The checker runs one operation after the other. Where the code orders two stores by `release`, the broken variant has the
 * stores in the other order, which is what a processor could do without it.
 *
 * look() reads the number of the pass again behind the request. The properties hold without that, too: take() looks at the
 * number. It only saves checks of a request that is none.
 *
 * property: whole: when a requester returns, each piece of its pass is in memory
 * property: once: no piece is copied by both, unless the owner gave it up or is dead
 * property: own request: an owner copies by the request of the pass whose piece it took
 * property: nothing later: no living owner writes to memory of a pass whose requester has returned
 * property: slot: a slot belongs to one living requester at a time
 * property: returns: a requester returns (no state in which all wait)
 *
 * broken: PUBLISHED_EARLY: the pieces can be taken before the request is written
 * broken: NOT_CLOSED: the pass of a dead requester stays open while the request of the next one is written
 * broken: TAKEN_BY_STORE: the owner takes a piece by a load and a store
 * broken: ENDED_BY_STORE: the owner ends a piece by a load and a store, which another pass may have changed between
 * broken: ENDED_EARLY: the owner says that a piece is in memory before it is
 * broken: NOT_WAITED: the requester does not wait for pieces that the owner took
 * broken: GIVEN_UP_IS_DONE: the requester takes pieces that the owner gave up for done
 * broken: FROM_THE_LIVING: a requester takes the slot of a living one
 */
#ifndef PIECES
#define PIECES 2
#endif
#define REQUESTERS 2

/* The word `left`: number of the pass, first piece that nobody took, piece behind the last one. */
byte left_number, left_first, left_end;
/* The word `ended`: number of the pass, pieces given up, pieces done. */
byte ended_number, ended_undone, ended_done;
byte holder;          /* 0: the slot is free */
byte word[2];         /* the request; sound if both are of one pass */

bool dead[REQUESTERS + 1];
bool owner_dead;
/* What the code does not have: by pass (its number), for the properties. */
#define PASSES (REQUESTERS + 2)
bool returned[PASSES];
byte by_requester[PASSES * PIECES], by_owner[PASSES * PIECES];
bool excused[PASSES]; /* the owner gave a piece up, or died */
byte working[REQUESTERS + 1]; /* how many believe to hold the slot as this requester */

/* One step, or the end of the process before it. */
#define OR_DIE(me) :: !dead[me] -> dead[me] = true; goto died

inline take_slot(me, got)
{
    got = false;
    if
    :: atomic { holder == 0 -> holder = me; got = true }
#ifdef FROM_THE_LIVING
    :: atomic { holder != 0 && holder != me -> holder = me; got = true }
#else
    :: atomic { holder != 0 && holder != me && dead[holder] -> holder = me; got = true }
#endif
    :: holder != 0 -> skip /* no slot: the requester does all pieces */
    fi
}

proctype requester(byte me; byte passes)
{
    byte number, own, others, i, p;
    bool has_slot, all_done;
    do
    :: passes > 0 ->
        passes--;
        own = 0; all_done = false;
        take_slot(me, has_slot);
        if
        :: has_slot ->
            assert((dead[1] -> 0 : working[1]) + (dead[2] -> 0 : working[2]) == 0); /* slot */
            working[me]++;
            number = left_number + 1;
            assert(number < PASSES);
#ifdef PUBLISHED_EARLY
            atomic { ended_number = number; ended_undone = 0; ended_done = 0 }
            atomic { left_number = number; left_first = 0; left_end = PIECES }
#endif
#ifndef NOT_CLOSED
            if :: atomic { left_number = number; left_first = 0; left_end = 0 } OR_DIE(me) fi;
#endif
            if :: word[0] = number OR_DIE(me) fi;
            if :: word[1] = number OR_DIE(me) fi;
            atomic { ended_number = number; ended_undone = 0; ended_done = 0 }
            if :: atomic { left_number = number; left_first = 0; left_end = PIECES } OR_DIE(me) fi;
            /* take(), by compare-and-swap */
            do
            :: atomic { left_number == number && left_first < left_end && left_first == own ->
                        left_first++; own++ }
                if
                :: d_step {
                       p = number * PIECES + own - 1;
                       assert(by_owner[p] == 0); /* once */
                       by_requester[p]++
                   }
                OR_DIE(me)
                fi
            :: atomic { !(left_number == number && left_first < left_end && left_first == own) -> break }
            od;
            /* close() */
            if :: atomic { left_number = number; left_first = own; left_end = own } OR_DIE(me) fi;
            /* finish() */
            others = PIECES - own;
#ifdef NOT_WAITED
            all_done = true;
#else
            if
            :: others == 0 -> all_done = true
            :: else ->
                if
                :: atomic { ended_number != number || ended_undone + ended_done >= others ->
#ifdef GIVEN_UP_IS_DONE
                       all_done = (ended_number == number)
#else
                       all_done = (ended_number == number && ended_undone == 0)
#endif
                   }
                :: owner_dead -> all_done = false
                OR_DIE(me)
                fi
            fi;
#endif
            /* leave() */
            if :: atomic { holder = 0; working[me]-- } OR_DIE(me) fi;
            if
            :: all_done -> skip
            :: else ->
                i = own;
                do
                :: i < PIECES -> by_requester[number * PIECES + i]++; i++
                :: else -> break
                od
            fi;
            atomic {
                i = 0;
                do
                :: i < PIECES ->
                    p = number * PIECES + i;
                    assert(by_requester[p] + by_owner[p] >= 1); /* whole */
                    assert(by_requester[p] + by_owner[p] == 1 || excused[number] || owner_dead); /* once */
                    i++
                :: else -> break
                od;
                returned[number] = true; i = 0; p = 0
            }
        :: else -> skip
        fi
    :: else -> break
    od;
died:
    skip
}

proctype owner(byte rounds)
{
    byte number, first, end, seen0, seen1, e_number, e_undone, e_done, piece, p;
    bool done;
    do
    :: rounds > 0 ->
        rounds--;
        /* look(); nothing may be posted any more */
end_look:
        atomic { left_first < left_end -> number = left_number; first = left_first; end = left_end };
        seen0 = word[0];
        seen1 = word[1];
        if
        :: left_number != number -> goto next
        :: else -> skip
        fi;
        if
        :: seen0 == 0 || seen1 == 0 -> goto next /* not sound */
        :: else -> skip
        fi;
        /* take() and end(), until no piece is left */
        do
        :: true ->
#ifdef TAKEN_BY_STORE
            if
            :: !(left_number == number && left_first < left_end && left_end == end) -> goto next
            :: else -> skip
            fi;
            left_end = end - 1;
            piece = end - 1; end = piece;
#else
            if
            :: atomic { left_number == number && left_first < left_end && left_end == end ->
                        left_end--; piece = left_end; end = piece }
            :: atomic { !(left_number == number && left_first < left_end && left_end == end) -> goto next }
            fi;
#endif
            assert(seen0 == number && seen1 == number); /* own request */
            p = number * PIECES + piece;
            if
            :: done = true
            :: atomic { done = false; excused[number] = true }
            :: atomic { owner_dead = true; excused[number] = true; goto died }
            fi;
#ifdef ENDED_EARLY
            if
            :: atomic { ended_number == number && done -> ended_done++ }
            :: else -> skip
            fi;
#endif
            if
            :: done ->
                d_step {
                    assert(!returned[number]); /* nothing later */
                    assert(by_requester[p] == 0 || excused[number]); /* once */
                    by_owner[p]++
                }
            :: else -> skip
            fi;
            assert(!returned[number]); /* nothing later */
            if
            :: skip
            :: atomic { owner_dead = true; excused[number] = true; goto died } /* nobody knows what it copied */
            fi;
#ifndef ENDED_EARLY
#ifdef ENDED_BY_STORE
            atomic { e_number = ended_number; e_undone = ended_undone; e_done = ended_done }
            if
            :: e_number == number ->
                atomic {
                    ended_number = e_number;
                    ended_undone = e_undone + (done -> 0 : 1); ended_done = e_done + (done -> 1 : 0)
                }
            :: else -> skip
            fi;
#else
            atomic {
                if
                :: ended_number == number && done -> ended_done++
                :: ended_number == number && !done -> ended_undone++
                :: else -> skip
                fi
            }
#endif
#else
            atomic {
                if
                :: ended_number == number && !done -> ended_undone++
                :: else -> skip
                fi
            }
#endif
        od;
next:
        skip
    :: break
    od;
    /* From here on it takes part in nothing. It has no piece that it did not end. */
died:
    skip
}

init
{
    atomic {
        run requester(1, 2);
        run requester(2, 1);
        run owner(3)
    }
}
