// Properties of random layouts, by RapidCheck: a layout that fails is made as small as it can be and still fail.
//
// Example: for_random_layouts(8000, [](random& from) { return random_spec(from); },
//                             [](random&, const spec& described) { EXPECT_TRUE(build(described).has_value()); });
#pragma once

#include "random.h"
#include "spec.h"

#include <functional>
#include <vector>

namespace ucxl::test
{

using draw_layout  = std::function<spec_ptr(random&)>;
using check_layout = std::function<void(random&, const spec&)>; // the numbers go on behind those that draw() took
using allow_layout = std::function<bool(const spec&)>;

// Checks so many layouts. The first for which an expectation fails, or that throws, fails the test, once, with the
// smallest that does so; only those that `allow` are tried, if it is there.
void for_random_layouts(int number, const draw_layout& draw, const check_layout& check, const allow_layout& allow = {});

// What is like it but one step simpler, the simplest first.
std::vector<spec_ptr> simpler(const spec& described);

} // namespace ucxl::test
