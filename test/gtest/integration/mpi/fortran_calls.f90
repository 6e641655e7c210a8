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
    integer :: sent(stride, number), received(stride, number), all(stride, 2 * number)

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    peer = mod(rank + 1, 2)
    call MPI_Type_vector(number, 1, stride, MPI_INTEGER, column, error)
    call MPI_Type_commit(column, error)
    sent = rank
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
    do i = 1, number
        if (received(1, i) /= peer .or. any(received(2:, i) /= -1)) wrong = wrong + 1
    end do

    ! The vector's last stride is missing in its extent, so the blocks of the gather are of numbers.
    call MPI_Iallgather(sent, 1, column, all, number, MPI_INTEGER, MPI_COMM_WORLD, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    do i = 0, 2 * number - 1
        if (all(1 + mod(i, stride), 1 + i / stride) /= i / number) wrong = wrong + 1
    end do
    received = -1
    if (rank == 0) received = 7
    call MPI_Ibcast(received, 1, column, 0, MPI_COMM_WORLD, requests(1), error)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    do i = 1, number
        if (received(1, i) /= 7) wrong = wrong + 1
        if (rank /= 0 .and. any(received(2:, i) /= -1)) wrong = wrong + 1
    end do
    call MPI_Type_free(column, error)
    print '(i0, a)', wrong, ' wrong'
    call MPI_Finalize(error)
    if (wrong /= 0) stop 1
end program fortran_calls
