/* The thread of the software device that is woken at a given time (src/softhca/shim/system/wake_timer.h). Two threads ask for
 * times, and the second one then ends the timer. The thread sleeps on a word that the kernel compares with what the thread has
 * seen before it lets it sleep.
 *
 * The code had two faults that this model found: the thread looked whether it was to end before it read the word, so that
 * stopping could leave it asleep; and stopping could wait for a thread that another one was about to make.
 *
 * property: earliest: the earliest time that was asked for and has not come yet counts
 * property: called: a time that was asked for comes (the thread does not sleep for ever while a time is due)
 * property: stopped: the function does not run after the timer was stopped
 * property: joined: who stops the timer waits for a thread that exists
 * property: ends: stopping returns (no state in which all wait)
 *
 * broken: NOT_COMPARED: the thread sleeps without comparing the word
 * broken: STOPPING_READ_FIRST: the thread looks whether it is to end before it reads the word
 * broken: WORD_READ_LATE: the thread reads the word after it has read the time
 * broken: COUNTED_FIRST: who asks changes the word before the time
 * broken: DUE_OVERWRITTEN: who asks for an earlier time than was due writes it, whoever has asked meanwhile
 * broken: NOT_WOKEN: who asks does not wake the thread
 * broken: STOP_NOT_COUNTED: stopping does not change the word
 * broken: STOPPED_BEFORE_STARTED: who makes the thread looks whether the timer stops before it says that it makes one
 * broken: NOT_WAITED_FOR_CREATION: stopping does not wait for a thread that is being made
 * broken: NOT_JOINED: stopping does not wait for the thread
 */
#define NEVER 255

byte due = NEVER;   /* what is due is due at once when the time comes */
byte changes;
bool started, created, stopping, ended;
bool sleeping;
byte now;           /* the time */

/* What the code does not have: */
bool stopped;
byte asked = NEVER; /* the earliest time that did not come yet */

/* In one step with the write of `due`, as is the compare-and-swap of the code. */
inline set_due(time)
{
    due = time;
    if :: time < asked -> asked = time :: else -> skip fi;
    assert(due <= asked) /* earliest */
}

inline wake()
{
#ifndef NOT_WOKEN
    sleeping = false
#else
    skip
#endif
}

/* _call(): nothing that is asked for stays undone */
inline call()
{
    assert(!stopped) /* stopped */
}

proctype timer()
{
    byte seen, until;
    assert(!stopped); /* stopped */
    do
    :: true ->
#ifdef STOPPING_READ_FIRST
        if :: stopping -> break :: else -> skip fi;
        seen = changes;
        until = due;
#else
#ifdef WORD_READ_LATE
        if :: stopping -> break :: else -> skip fi;
        until = due;
        seen = changes;
#else
        seen = changes;
        if :: stopping -> break :: else -> skip fi;
        until = due;
#endif
#endif
        if
        :: until == NEVER || now < until ->
            /* The kernel: compares and sleeps in one step. A time that is reached ends the sleep. */
            atomic {
                if
#ifdef NOT_COMPARED
                :: true -> sleeping = true
#else
                :: changes == seen -> sleeping = true
                :: else -> skip
#endif
                fi
            }
            (!sleeping || (until != NEVER && now >= until));
            sleeping = false
        :: else ->
            if
            :: atomic { due == until -> due = NEVER; asked = NEVER }
                call()
            :: due != until -> skip
            fi
        fi
    od;
    ended = true
}

inline wake_at(time)
{
    byte before;
#ifdef DUE_OVERWRITTEN
    before = due;
    if :: time < before -> atomic { set_due(time) } :: else -> skip fi;
#else
    atomic {
        before = due;
#ifndef COUNTED_FIRST
        if :: time < due -> set_due(time) :: else -> skip fi
#endif
    };
#endif
    if
    :: time < before || !started ->
        changes++;
#ifdef COUNTED_FIRST
        wake();
        atomic { if :: time < due -> set_due(time) :: else -> skip fi };
#endif
        if
        :: started -> wake()
        :: else ->
            /* start() */
#ifdef STOPPED_BEFORE_STARTED
            if
            :: stopping -> skip
            :: else ->
                if
                :: atomic { !started -> started = true }
                    run timer();
                    created = true
                :: started -> skip
                fi
            fi
#else
            if
            :: atomic { !started -> started = true }
                if
                :: stopping -> started = false
                :: else ->
                    run timer();
                    created = true
                fi
            :: started -> skip
            fi
#endif
        fi
    :: else -> skip
    fi
}

inline stop()
{
    bool was;
    atomic { was = stopping; stopping = true };
    if
    :: was -> skip
    :: else ->
#ifndef NOT_WAITED_FOR_CREATION
        (!started || created);
        if
        :: !created -> goto is_stopped
        :: else -> skip
        fi;
#else
        if
        :: !started -> goto is_stopped
        :: else -> skip
        fi;
#endif
#ifndef STOP_NOT_COUNTED
        changes++;
#endif
        wake();
        assert(created); /* joined */
#ifndef NOT_JOINED
        ended;
#endif
        started = false
    fi;
is_stopped:
    stopped = true
}

proctype asker()
{
    wake_at(1);
    wake_at(1)
}

proctype ender()
{
    wake_at(2);
    (now == 3);
    /* Nobody may sleep for ever with something due: whoever asked has woken the thread. */
    (!started || !sleeping || due == NEVER || stopping); /* called */
    stop()
}

active proctype clock()
{
    do
    :: now < 3 -> now++
    :: else -> break
    od
}

init
{
    atomic {
        run asker();
        run ender()
    }
}
