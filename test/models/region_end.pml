/* The end of a region of shared memory under windows (src/ucs/window/region.h, src/uct/layout/peer/export.cc): the owner of the
 * memory says that nobody finds the region any more, looks for windows over it, and takes their records away from peers. At
 * the same time another thread makes a window over the region and exports it, and binds a window that peers know to it.
 *
 * Looking a region up, publishing a window or a binding, and writing a record are steps of their own. Records are written and
 * taken away under one lock (exporter), windows are listed under another one (registry).
 *
 * property: no record: when the memory was given back, no record that peers can read names the region
 * property: kept: a window over other memory keeps its record
 *
 * broken: LISTED_FIRST: windows over the region are looked for before it is marked
 * broken: EXPORT_DOES_NOT_LOOK: a record is written without looking whether the region is marked
 * broken: REBINDING_DOES_NOT_LOOK: a rebinding changes the record without looking; the code had that
 * broken: RECORD_BEFORE_WINDOW: the record of a window is written before the window can be found
 */
bool marked;             /* the region is withdrawn */
bool exporter;           /* lock */
bool is_over[2];         /* the window's binding, as published, is over the region */
bool is_known[2];        /* the window is in the registry */
bool has_record[2];      /* peers can read it */
bool record_is_over[2];  /* and it names the region */
bool given_back;

proctype giver()
{
    bool listed[2];
    byte i;
#ifdef LISTED_FIRST
    atomic { listed[0] = is_known[0] && is_over[0]; listed[1] = is_known[1] && is_over[1] }
    marked = true;
#else
    marked = true;
    atomic { listed[0] = is_known[0] && is_over[0]; listed[1] = is_known[1] && is_over[1] }
#endif
    do
    :: i < 2 ->
        if
        :: listed[i] ->
            atomic { !exporter -> exporter = true };
            has_record[i] = false;
            exporter = false
        :: else -> skip
        fi;
        i++
    :: else -> break
    od;
    given_back = true;
    assert(!(has_record[0] && record_is_over[0])); /* no record */
    assert(!(has_record[1] && record_is_over[1])) /* no record */
}

/* export_window(): looks under the lock whether the window may be exported */
inline export(window)
{
    atomic { !exporter -> exporter = true };
    if
#ifdef EXPORT_DOES_NOT_LOOK
    :: is_over[window] || !is_over[window] ->
#else
    :: !(is_over[window] && marked) ->
#endif
        record_is_over[window] = is_over[window];
        assert(!(given_back && record_is_over[window])); /* no record */
        has_record[window] = true
    :: else -> skip
    fi;
    exporter = false
}

/* Makes window 1 over the region and exports it. */
proctype maker()
{
    bool found;
    found = !marked;
#ifdef RECORD_BEFORE_WINDOW
    atomic { !exporter -> exporter = true };
    if
    :: found && !marked -> record_is_over[1] = true; has_record[1] = true
    :: else -> skip
    fi;
    exporter = false;
    is_over[1] = found;
    is_known[1] = true
#else
    is_over[1] = found;
    is_known[1] = true;
    export(1)
#endif
}

/* Binds window 0, which peers know, to the region. */
proctype binder()
{
    bool found;
    found = !marked;
    is_over[0] = found;
    /* update_exported_window() */
    atomic { !exporter -> exporter = true };
    if
    :: has_record[0] ->
        if
#ifndef REBINDING_DOES_NOT_LOOK
        :: is_over[0] && marked -> has_record[0] = false
#endif
        :: else ->
            record_is_over[0] = is_over[0];
            assert(!(given_back && record_is_over[0])) /* no record */
        fi
    :: else -> skip
    fi;
    assert(has_record[0] || is_over[0]); /* kept */
    exporter = false
}

init
{
    atomic {
        is_known[0] = true;
        has_record[0] = true;
        run giver();
        run maker();
        run binder()
    }
}
