# The public C++ header by itself, as Doxyfile.api. Run with `contrib/dev docs`.
@INCLUDE               = docs/Doxyfile.api
OUTPUT_DIRECTORY       = $(UCXL_DOCS_OUT)/cpp
PROJECT_NAME           = "ucx-layout C++ API"
INPUT                  = src/ucp/layout/api/ucp_layout.hpp
OPTIMIZE_OUTPUT_FOR_C  = NO
