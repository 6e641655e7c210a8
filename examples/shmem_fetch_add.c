/*
 * OpenSHMEM: all PEs draw numbers from one counter, first in memory of the host, then in memory of PE 0's network card.
 *
 *     oshcc -o shmem_fetch_add shmem_fetch_add.c
 *     oshrun -n 2 --mca sshmem ucx --mca memheap_base_device_nic_mem_seg_size 4096 ./shmem_fetch_add
 *
 * Without a card put "softhca-run --" before oshrun. Without the segment size Open MPI ignores the hint.
 */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE = 4096 };

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* Tells on PE 0 how long a draw took, and returns there how much is wrong. */
static long draw(const char* memory, long* counter, long draws)
{
    long* result = shmem_calloc(2, sizeof(*result)); /* of all PEs: the sum of the numbers, how many came too early */
    long all     = draws * shmem_n_pes();
    long sum     = 0;
    long early   = 0;
    long last    = -1;
    long wrong   = 0;
    double start;

    /* Not a store: the CPU may be unable to reach memory of the card. */
    if (shmem_my_pe() == 0) {
        shmem_long_atomic_set(counter, 0, 0);
        shmem_quiet();
    }
    shmem_barrier_all();
    start = now_us();
    for (long i = 0; i < draws; ++i) {
        long number = shmem_long_atomic_fetch_add(counter, 1, 0);

        early += number <= last; /* a counter never goes back */
        sum += number;
        last = number;
    }
    start = now_us() - start;
    shmem_long_atomic_add(&result[0], sum, 0);
    shmem_long_atomic_add(&result[1], early, 0);
    shmem_barrier_all();

    if (shmem_my_pe() == 0) {
        /* Each number from 0 on was drawn once. */
        wrong = result[1] + (result[0] != all * (all - 1) / 2) + (shmem_long_atomic_fetch(counter, 0) != all);
        printf("%s: %ld numbers drawn by %d PEs, %ld wrong, %.1f us for each\n", memory, all, shmem_n_pes(), wrong,
               start / (double)draws);
    }
    shmem_free(result);
    return wrong;
}

int main(int argc, char** argv)
{
    long draws = argc > 1 ? atol(argv[1]) : 10000;
    long *host, *card;
    long wrong;
    int was_ignored;

    shmem_init();
    host = shmem_malloc(sizeof(*host));
    card = shmem_malloc_with_hints(sizeof(*card), SHMEM_HINT_DEVICE_NIC_MEM);
    if (host == NULL || card == NULL) {
        fprintf(stderr, "no symmetric memory\n");
        shmem_global_exit(1);
    }
    /* A hint is no more than that. Nothing says whether it was followed, but the card's memory is no part of the heap,
     * where the two words would be neighbours. */
    was_ignored = labs((long)card - (long)host) < PAGE;
    wrong       = draw("memory of the host", host, draws);
    wrong += draw(was_ignored ? "memory of the host, as the hint was ignored" : "memory of the card", card, draws);
    shmem_free(card);
    shmem_free(host);
    shmem_finalize();
    return wrong == 0 ? 0 : 1;
}
