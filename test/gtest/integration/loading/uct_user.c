#include <uct/api/uct.h>

int main(void)
{
    uct_component_h *components;
    unsigned num_components;
    if (uct_query_components(&components, &num_components) != UCS_OK) {
        return 1;
    }
    uct_release_component_list(components);
    return 0;
}
