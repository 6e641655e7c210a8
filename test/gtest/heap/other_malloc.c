/* Stands for another malloc that is loaded beside the C library's: it would read its own records beside a block. */
#include <stddef.h>

size_t malloc_usable_size(void* block);

size_t malloc_usable_size(void* block)
{
    return block == NULL ? 0 : (size_t)1 << 40;
}
