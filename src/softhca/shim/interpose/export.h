// For the files that define functions of other libraries: the only functions that libsofthca.so exports.
#pragma once

#if defined(_FORTIFY_SOURCE) && _FORTIFY_SOURCE > 0
#error "the C library's inline forms of these functions are in the way: compile without _FORTIFY_SOURCE"
#endif

#define SOFTHCA_INTERPOSED extern "C" [[gnu::visibility("default")]]
