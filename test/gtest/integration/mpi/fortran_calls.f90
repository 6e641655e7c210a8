! Messages and a collective call of Fortran with derived datatypes, by mpif.h (without USE_F08) or by the module mpi_f08.
! usage: mpirun -n 2 mpi_fortran_calls_MPI
program fortran_calls
#ifdef USE_F08
    use mpi_f08
#else
    use mpi
#endif
    implicit none
    integer, parameter :: number = 1000, stride = 3
#ifdef USE_F08
    type(MPI_Datatype) :: column
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
#else
    integer :: column, requests(2), statuses(MPI_STATUS_SIZE, 2)
#endif
    integer :: rank, ranks, peer, count, error, i, wrong
    integer :: sent(stride, number), received(stride, number), theirs(stride, number), all(stride, 2 * number)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    peer = mod(rank + 1, 2)
    call MPI_Type_vector(number, 1, stride, MPI_INTEGER, column, error)
    call MPI_Type_commit(column, error)
    sent = numbers_of(rank)
    received = -1
    all = -1
    call MPI_Irecv(received, 1, column, peer, 5, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(sent, 1, column, peer, 5, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, statuses, error)
#ifdef USE_F08
    call MPI_Get_count(statuses(1), column, count, error)
#else
    call MPI_Get_count(statuses(:, 1), column, count, error)
#endif
    wrong = 0
    if (count /= 1) wrong = wrong + 1
    theirs = numbers_of(peer)
    do i = 1, number
        if (received(1, i) /= theirs(1, i) .or. any(received(2:, i) /= -1)) wrong = wrong + 1
    end do

    ! The vector's last stride is missing in its extent, so the blocks of the gather are of numbers.
    call MPI_Iallgather(sent, 1, column, all, number, MPI_INTEGER, MPI_COMM_WORLD, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    do i = 0, 2 * number - 1
        theirs = numbers_of(i / number)
        if (all(1 + mod(i, stride), 1 + i / stride) /= theirs(1, 1 + mod(i, number))) wrong = wrong + 1
    end do
    received = -1
    theirs = numbers_of(7)
    if (rank == 0) received = theirs
    call MPI_Ibcast(received, 1, column, 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    do i = 1, number
        if (received(1, i) /= theirs(1, i)) wrong = wrong + 1
        if (rank /= 0 .and. any(received(2:, i) /= -1)) wrong = wrong + 1
    end do
    call MPI_Type_free(column, error)
    print '(i0, a)', wrong, ' wrong'
    call MPI_Finalize(error)
    if (wrong /= 0) stop 1
contains
    ! What a process sends: no two numbers of all processes are the same.
    pure function numbers_of(sender) result(made)
        integer, intent(in) :: sender
        integer :: made(stride, number), k
        made = reshape([(10000 * sender + k, k=1, stride * number)], [stride, number])
    end function numbers_of
end program fortran_calls
