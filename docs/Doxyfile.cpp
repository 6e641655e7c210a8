# The public C++ headers by themselves, as Doxyfile.api. Run with `contrib/dev docs`.
@INCLUDE               = docs/Doxyfile.api
OUTPUT_DIRECTORY       = $(UCXL_DOCS_OUT)/cpp
PROJECT_NAME           = "ucx-layout C++ API"
FILE_PATTERNS          = *.hpp
OPTIMIZE_OUTPUT_FOR_C  = NO
