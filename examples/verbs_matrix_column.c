/*
 * Moves a column of one matrix into a column of another by one RDMA write: a layout key on each side, no packing.
 *
 * One process with a queue pair connected to itself, to show the keys and nothing else:
 *
 *     softhca-run -- ./verbs_matrix_column        (or on a real mlx5 device, without softhca-run)
 */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <uct_mlx5_layout.h>

enum { ROWS = 1024, COLUMNS = 1024, FROM = 3, TO = 5 };

static double source[ROWS][COLUMNS];
static double target[ROWS][COLUMNS];

static double number_at(int row, int column)
{
    return (double)row * COLUMNS + column + 1;
}

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (!(cond)) {                                                                                                 \
            perror(#cond);                                                                                             \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct ibv_qp* loopback_queue(struct ibv_pd* pd, struct ibv_cq* cq)
{
    struct ibv_qp_cap one_of_each = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
    struct ibv_qp_init_attr init  = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = one_of_each};
    struct ibv_qp* qp             = ibv_create_qp(pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    struct ibv_port_attr port;

    CHECK(qp != NULL);
    CHECK(ibv_query_port(pd->context, 1, &port) == 0);
    CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
    attr = (struct ibv_qp_attr){.qp_state           = IBV_QPS_RTR,
                                .path_mtu           = port.active_mtu,
                                .dest_qp_num        = qp->qp_num,
                                .max_dest_rd_atomic = 1,
                                .min_rnr_timer      = 12,
                                .ah_attr            = {.dlid = port.lid, .port_num = 1}};
    if (port.link_layer != IBV_LINK_LAYER_INFINIBAND) {
        attr.ah_attr.is_global     = 1;
        attr.ah_attr.grh.hop_limit = 1;
        CHECK(ibv_query_gid(pd->context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
    }
    CHECK(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    CHECK(ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0);
    return qp;
}

/* A key that shows one column of a matrix as ROWS * 8 contiguous bytes, beginning at address 0. */
static uct_mlx5_layout_region_attr_t column_key(uct_mlx5_layout_domain_h domain, struct ibv_mr* mr, double* first,
                                                uct_mlx5_layout_region_h* region_p)
{
    uct_mlx5_layout_region_params_t params = {.field_mask = UCT_MLX5_LAYOUT_REGION_PARAM_FIELD_ACCESS,
                                              .access     = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
    uct_mlx5_layout_dim_t rows             = {.count = ROWS, .stride = sizeof(source[0])};
    uct_mlx5_layout_item_t column = {.element  = {.addr = (uintptr_t)first, .length = sizeof(*first), .lkey = mr->lkey},
                                     .repeat   = 1,
                                     .dims     = &rows,
                                     .num_dims = 1};
    uct_mlx5_layout_region_attr_t attr = {
        .field_mask = UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LKEY | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_RKEY |
                      UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_ADDRESS | UCT_MLX5_LAYOUT_REGION_ATTR_FIELD_LENGTH};

    CHECK(uct_mlx5_layout_region_create(domain, &params, region_p) == UCS_OK);
    CHECK(uct_mlx5_layout_set_interleaved(*region_p, 0, 1, &column) == UCS_OK);
    CHECK(uct_mlx5_layout_region_query(*region_p, &attr) == UCS_OK);
    return attr;
}

int main(void)
{
    struct mlx5dv_context_attr devx        = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    uct_mlx5_layout_domain_params_t params = {.field_mask = UCT_MLX5_LAYOUT_DOMAIN_PARAM_FIELD_PD};
    struct ibv_device** devices            = ibv_get_device_list(NULL);
    struct ibv_context* context;
    struct ibv_pd* pd;
    struct ibv_cq* cq;
    struct ibv_qp* qp;
    struct ibv_mr *source_mr, *target_mr;
    uct_mlx5_layout_domain_h domain;
    uct_mlx5_layout_region_h from_region, to_region;
    uct_mlx5_layout_region_attr_t from, to;
    struct ibv_send_wr* bad;
    struct ibv_wc done;
    int right = 0;

    CHECK(devices != NULL && devices[0] != NULL);
    CHECK((context = mlx5dv_open_device(devices[0], &devx)) != NULL);
    CHECK((pd = ibv_alloc_pd(context)) != NULL);
    CHECK((cq = ibv_create_cq(context, 2, NULL, NULL, 0)) != NULL);
    CHECK((source_mr = ibv_reg_mr(pd, source, sizeof(source), IBV_ACCESS_LOCAL_WRITE)) != NULL);
    CHECK((target_mr = ibv_reg_mr(pd, target, sizeof(target), IBV_ACCESS_LOCAL_WRITE)) != NULL);
    qp = loopback_queue(pd, cq);
    for (int row = 0; row < ROWS; ++row) {
        for (int column = 0; column < COLUMNS; ++column) {
            source[row][column] = number_at(row, column);
        }
    }

    params.pd = pd;
    CHECK(uct_mlx5_layout_domain_open(&params, &domain) == UCS_OK);
    from = column_key(domain, source_mr, &source[0][FROM], &from_region);
    to   = column_key(domain, target_mr, &target[0][TO], &to_region);

    struct ibv_sge local       = {.addr = from.address, .length = from.length, .lkey = from.lkey};
    struct ibv_send_wr request = {.sg_list    = &local,
                                  .num_sge    = 1,
                                  .opcode     = IBV_WR_RDMA_WRITE,
                                  .send_flags = IBV_SEND_SIGNALED,
                                  .wr.rdma    = {.remote_addr = to.address, .rkey = to.rkey}};
    CHECK(ibv_post_send(qp, &request, &bad) == 0);
    while (ibv_poll_cq(cq, 1, &done) == 0) {
    }
    CHECK(done.status == IBV_WC_SUCCESS);

    for (int row = 0; row < ROWS; ++row) {
        int num_right = 0;
        for (int column = 0; column < COLUMNS; ++column) {
            num_right += target[row][column] == (column == TO ? number_at(row, FROM) : 0);
        }
        right += num_right == COLUMNS;
    }
    printf("column: %d of %d rows as expected, by one write of %zu bytes through two keys\n", right, ROWS,
           (size_t)from.length);

    uct_mlx5_layout_region_destroy(from_region);
    uct_mlx5_layout_region_destroy(to_region);
    uct_mlx5_layout_domain_close(domain);
    ibv_destroy_qp(qp);
    ibv_dereg_mr(source_mr);
    ibv_dereg_mr(target_mr);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(context);
    ibv_free_device_list(devices);
    return right == ROWS ? 0 : 1;
}
