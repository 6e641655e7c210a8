int ucp_init_version(unsigned major, unsigned minor, const void *params, const void *config, void **context);

int main(void)
{
    void *context;
    return ucp_init_version(1, 18, (void *)0, (void *)0, &context);
}
