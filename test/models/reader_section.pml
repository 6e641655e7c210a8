/* Sections of readers, and a writer that takes an object away (src/ucs/window/reader_section.h, decision 25). A section is two
 * plain stores while one thread opens sections; a store may then stay in the buffer of its processor until the kernel
 * interrupts the thread (membarrier). The second thread that opens one, or the first that waits, says so by a flag.
 *
 * The first thread reads. The second one reads too, or does not; then it takes away two objects, one after the other. Both
 * threads have the buffer of a processor for the start of a section.
 *
 * property: not freed: no reader uses an object that was freed
 * property: own object: a reader that finds the object in a section keeps it until the section ends
 * property: ends: the writer does not wait for ever (no state in which all wait)
 *
 * broken: NO_INTERRUPTION: the writer sets the flag and does not interrupt the reader
 * broken: FLAG_READ_FIRST: a section looks at the flag before it stores its start
 * broken: FLAG_IGNORED: a section never makes its start visible at once
 * broken: INTERRUPTED_FIRST: the writer interrupts before it sets the flag
 * broken: FREED_FIRST: the writer frees before it waits
 * broken: UNPUBLISHED_LATE: the writer waits before it takes the object away
 * broken: OLD_SECTIONS_PASS: the writer does not wait for sections of an earlier epoch
 * broken: SECOND_IS_SILENT: the second reader comes into the list without setting the flag
 */
#ifndef SECTIONS
#define SECTIONS 3 /* of the first thread */
#endif

byte epoch = 1;
bool flag;                /* has_several_readers */
bool published[2] = true; /* the object can be found */
bool freed[2];
byte since[2];            /* as all threads see it */
byte buffered[2] = 255;   /* of the processor: 255 is nothing; only the first reader uses it */
bool listed[2];
byte head = 255;          /* of the list: who came last */
bool lock;                /* of the list */

/* The kernel's interruption: what is buffered becomes visible. */
inline interrupt_readers()
{
    atomic {
        if :: buffered[0] != 255 -> since[0] = buffered[0]; buffered[0] = 255 :: else -> skip fi;
        if :: buffered[1] != 255 -> since[1] = buffered[1]; buffered[1] = 255 :: else -> skip fi
    }
}

inline become_shared()
{
#ifdef NO_INTERRUPTION
    flag = true
#else
#ifdef INTERRUPTED_FIRST
    interrupt_readers();
    flag = true
#else
    if
    :: !flag -> flag = true; interrupt_readers()
    :: else -> skip
    fi
#endif
#endif
}

/* A processor may write its buffer at any time, or keep it. */
active proctype memory()
{
    do
    :: atomic { buffered[0] != 255 -> since[0] = buffered[0]; buffered[0] = 255 }
    :: atomic { buffered[1] != 255 -> since[1] = buffered[1]; buffered[1] = 255 }
    :: timeout -> break
    od
}

/* A store goes into the buffer behind what is there, which becomes visible with it. */
inline store(me, value)
{
    atomic {
        if :: buffered[me] != 255 -> since[me] = buffered[me] :: else -> skip fi;
        buffered[me] = value
    }
}

inline enter_list(me)
{
    atomic { !lock -> lock = true };
#ifndef SECOND_IS_SILENT
    if :: head != 255 -> become_shared() :: else -> skip fi;
#endif
    listed[me] = true;
    head = me;
    lock = false
}

inline section(me)
{
    now = epoch;
#ifdef FLAG_READ_FIRST
    several = flag;
    store(me, now);
#else
    store(me, now);
    several = flag;
#endif
    if
#ifdef FLAG_IGNORED
    :: false -> skip
#else
    :: several ->
        /* an exchange: visible before the reads that follow */
        atomic { since[me] = now; buffered[me] = 255 }
#endif
    :: else -> skip
    fi;
    if :: object = 0 :: object = 1 fi;
    has = published[object];
    if
    :: has ->
        assert(!freed[object]); /* not freed */
        skip;
        assert(!freed[object]) /* own object */
    :: else -> skip
    fi;
    store(me, 0)
}

proctype first(byte sections)
{
    byte now, object;
    bool several, has;
    enter_list(0);
    do
    :: sections > 0 -> sections--; section(0)
    :: else -> break
    od
}

inline wait_for_readers()
{
    atomic { epoch++; after = epoch };
    atomic { !lock -> lock = true };
    if :: head != 255 && head != 1 -> become_shared() :: else -> skip fi;
    i = 0;
    do
    :: i < 2 ->
        if
        :: !listed[i] -> i++
        :: else ->
            seen = since[i];
            if
#ifdef OLD_SECTIONS_PASS
            :: seen == 0 || seen < after -> i++
#else
            :: seen == 0 || seen >= after -> i++
#endif
            :: else -> (since[i] != seen || buffered[i] != 255)
            fi
        fi
    :: else -> break
    od;
    lock = false
}

proctype second()
{
    byte now, object, after, seen, i, taken;
    bool several, has;
    if
    :: enter_list(1); section(1)
    :: skip
    fi;
    do
    :: taken < 2 ->
#ifdef FREED_FIRST
        published[taken] = false;
        freed[taken] = true;
        wait_for_readers();
#else
#ifdef UNPUBLISHED_LATE
        wait_for_readers();
        published[taken] = false;
#else
        published[taken] = false;
        wait_for_readers();
#endif
        freed[taken] = true;
#endif
        taken++
    :: else -> break
    od
}

init
{
    atomic {
        run first(SECTIONS);
        run second()
    }
}
