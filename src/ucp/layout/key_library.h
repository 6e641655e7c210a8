// libuct_mlx5_layout, which makes hardware keys. It exists only where rdma-core does, and is opened when it is needed.
//
// Example: if (void* const library = open_key_library()) { dlsym(library, "uct_mlx5_layout_explain"); }
#pragma once

namespace ucxl
{

// The library next to this one, or the one that the loader finds. Null after an error, which dlerror() says. Nobody
// closes it. Throws std::bad_alloc.
void* open_key_library();

} // namespace ucxl
