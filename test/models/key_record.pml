/* The record of a remote key (src/uct/layout/peer/record_file.h, export.cc, import.cc): the owner of a window writes it into a
 * file that a peer reads and maps, changes it when the window is bound elsewhere, and erases it when the window ends. The
 * place is then used for the record of another window. Each word is written and read alone.
 *
 * The peer imports the record once and moves bytes through it several times, from two threads: before each operation a thread
 * looks whether the generation is still that of its key, and whether the counter of bindings is that of the places they use. If
 * not, it reads the places anew, under a lock, for both.
 *
 * An operation looks at the counter first. If it looked at the generation first, the window could end and another one get the
 * place between, whose counter may be that of places from before a rebinding. The code had that; this model found it.
 *
 * property: whole: a record that was imported is that of the key, all of one binding
 * property: one binding: the places of an operation are all of one binding
 * property: not behind: an operation that begins after a rebinding returned uses its places, or fails
 * property: ended: no operation that begins after the end of the window succeeds
 *
 * broken: GENERATION_STAYS: the place of an ended window is used again with the old generation in it
 * broken: NOT_LOOKED_AGAIN: the peer does not read the generation again behind the record
 * broken: COUNTED_ONCE: a rebinding counts only after it has written the places
 * broken: COUNTED_FIRST: a rebinding counts twice before it writes the places
 * broken: COUNTER_NOT_READ_AGAIN: the peer does not read the counter again behind the places
 * broken: ODD_IS_READ: the peer reads places while the counter is odd
 * broken: COUNTER_IGNORED: an operation does not look at the counter
 * broken: OTHER_WINDOW_FOLLOWED: places that were read anew are used without looking whose they are; the code had that
 * broken: GENERATION_LOOKED_FIRST: an operation looks at the generation before the counter
 * broken: GENERATION_IGNORED: an operation does not look at the generation
 */
#ifndef REBINDINGS
#define REBINDINGS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif

/* The record in the file. */
byte generation, counter, place[2];

/* What the code does not have. A place is the number of its binding, 0 to REBINDINGS, in the first window, and 100 in another
 * one. */
byte bound;         /* the last binding that returned */
bool is_ended;      /* the first window */

/* What the threads of the peer share. Those who use places keep them until they have ended, so each set is one value. */
byte used = 255, used_binding; /* places: 255 is none, 254 a mixture */
bool importer;                 /* lock */

proctype owner()
{
    byte i;
    /* The record of generation 1 was written before the peer got its key. */
    do
    :: i < REBINDINGS ->
        i++;
#ifdef COUNTED_FIRST
        counter++;
        counter++;
        place[0] = i;
        place[1] = i;
#else
#ifndef COUNTED_ONCE
        counter++;
#endif
        place[0] = i;
        place[1] = i;
        counter++;
#ifdef COUNTED_ONCE
        counter++;
#endif
#endif
        bound = i
    :: break
    od;
    if
    :: skip /* the window stays */
    :: /* it ends, and another one gets the place */
#ifndef GENERATION_STAYS
        generation = 0;
#endif
        is_ended = true;
        counter = 0;
        place[0] = 100;
        place[1] = 100;
        generation = 2
    fi
}

/* Reads the places of one binding, or gives up. */
inline read_places()
{
    is_read = false;
    seen = counter;
    if
#ifndef ODD_IS_READ
    :: seen % 2 != 0 -> skip
#endif
    :: else ->
        copy[0] = place[0];
        copy[1] = place[1];
#ifdef COUNTER_NOT_READ_AGAIN
        is_read = true
#else
        if
        :: counter == seen -> is_read = true
        :: else -> skip
        fi
#endif
    fi
}

/* The copy becomes what both threads use. */
inline set_used()
{
    atomic {
        if
        :: copy[0] == copy[1] -> used = copy[0]
        :: else -> used = 254
        fi;
        used_binding = seen
    }
}

proctype peer(byte operations)
{
    byte seen, copy[2], mine, mine_binding, begun;
    bool is_read, is_present, was_ended;
    /* import: the first thread reads the record, the other one finds it */
    atomic { !importer -> importer = true };
    if
    :: used != 255 -> skip
    :: else ->
        if
        :: generation == 1 -> skip
        :: else -> goto refused
        fi;
        read_places();
        if
        :: is_read -> skip
        :: else -> goto refused
        fi;
#ifndef NOT_LOOKED_AGAIN
        if
        :: generation == 1 -> skip
        :: else -> goto refused
        fi;
#endif
        assert(copy[0] == copy[1] && copy[0] != 100); /* whole */
        set_used()
    fi;
    importer = false;
    do
    :: operations > 0 ->
        operations--;
        atomic { begun = bound; was_ended = is_ended };
#ifdef GENERATION_LOOKED_FIRST
        if
        :: generation == 1 -> skip
        :: else -> goto ended
        fi;
#endif
#ifndef COUNTER_IGNORED
        mine_binding = used_binding;
        is_present = counter == mine_binding;
        if
        :: is_present -> skip
        :: else ->
            /* follow() */
            atomic { !importer -> importer = true };
            read_places();
            if
            :: is_read -> skip
            :: else -> importer = false; goto next
            fi;
#ifndef OTHER_WINDOW_FOLLOWED
            if
            :: generation == 1 -> skip
            :: else -> goto refused
            fi;
#endif
            if
            :: used_binding == seen -> skip
            :: else -> set_used()
            fi;
            importer = false
        fi;
#endif
#ifndef GENERATION_LOOKED_FIRST
#ifndef GENERATION_IGNORED
        if
        :: generation == 1 -> skip
        :: else -> goto ended
        fi;
#endif
#endif
        mine = used;
        assert(mine != 254 && mine != 100); /* one binding */
        assert(mine >= begun); /* not behind */
        assert(!was_ended); /* ended */
next:
        skip
    :: else -> break
    od;
    goto ended;
refused:
    importer = false;
ended:
    skip
}

init
{
    atomic {
        generation = 1;
        run owner();
        run peer(OPERATIONS);
        run peer(1)
    }
}
