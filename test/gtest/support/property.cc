#include "property.h"

#include "rapid_check.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <sstream>

namespace ucxl::test
{

namespace
{

struct drawn {
    spec_ptr described;
    random numbers;
};

void showValue(const drawn& value, std::ostream& out) // RapidCheck finds it by this name
{
    out << to_string(*value.described);
}

rc::Seq<drawn> shrinks_of(const drawn& value, const allow_layout& allow)
{
    std::vector<drawn> all;
    for (const spec_ptr& one : simpler(*value.described)) {
        if (build(*one) && (!allow || allow(*one))) {
            all.push_back({one, value.numbers});
        }
    }
    return rc::seq::fromContainer(std::move(all));
}

rc::Gen<drawn> generator_of(const draw_layout& draw, const allow_layout& allow)
{
    return rc::Gen<drawn>([&draw, &allow](const rc::Random& entropy, int) {
        random numbers(rc::Random(entropy).next());
        spec_ptr described = draw(numbers);
        return rc::shrinkable::shrinkRecur(drawn{std::move(described), numbers},
                                           [&allow](const drawn& value) { return shrinks_of(value, allow); });
    });
}

// "" or what GoogleTest would have said.
std::string failures_of(const check_layout& check, drawn one)
{
    testing::TestPartResultArray results;
    {
        const testing::ScopedFakeTestPartResultReporter reporter(
            testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
        check(one.numbers, *one.described);
    }
    std::ostringstream text;
    for (int i = 0; i < results.size(); ++i) {
        if (results.GetTestPartResult(i).failed()) {
            text << results.GetTestPartResult(i);
        }
    }
    return text.str();
}

std::vector<std::uint64_t> lower(std::uint64_t number)
{
    if (number < 3) {
        return number == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{number - 1};
    }
    return {1, number / 2, number - 1};
}

std::vector<std::int64_t> nearer(std::int64_t number)
{
    if (number == 0) {
        return {};
    }
    return number == 1 || number == -1 ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, number / 2};
}

// Calls add() with each list that is one step simpler.
template <typename Fn>
void simpler_dims(const std::vector<dim>& dims, Fn&& add)
{
    for (std::size_t i = 0; i < dims.size(); ++i) {
        auto changed = dims;
        if (dims.size() > 1) {
            changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
            add(changed);
        }
        for (const std::uint64_t count : lower(dims[i].count)) {
            changed          = dims;
            changed[i].count = count;
            add(changed);
        }
        for (const std::int64_t stride : nearer(dims[i].stride)) {
            changed           = dims;
            changed[i].stride = stride;
            add(changed);
        }
    }
}

template <typename Fn>
void simpler_part(const spec_part& part, Fn&& add)
{
    const auto change = [&](auto member, auto value) {
        spec_part changed = part;
        changed.*member   = value;
        add(changed);
    };
    for (const spec_ptr& item : simpler(*part.item)) {
        change(&spec_part::item, item);
    }
    for (const std::int64_t offset : nearer(part.offset)) {
        change(&spec_part::offset, offset);
    }
    for (const std::uint64_t repeat : lower(part.repeat)) {
        change(&spec_part::repeat, repeat);
    }
    if (part.source > 0) {
        change(&spec_part::source, 0u);
    }
    simpler_dims(part.dims, [&](const std::vector<dim>& dims) { change(&spec_part::dims, dims); });
}

} // namespace

void for_random_layouts(int number, const draw_layout& draw, const check_layout& check, const allow_layout& allow)
{
    const auto generator   = generator_of(draw, allow);
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    rc::detail::TestMetadata metadata;
    metadata.id          = std::string(test->test_suite_name()) + "/" + test->name();
    metadata.description = test->name();
    auto params          = rc::detail::configuration().testParams;
    params.maxSuccess    = number;
    const auto result    = rc::detail::checkTestable(
        [&] {
            const std::string failures = failures_of(check, *generator);
            if (!failures.empty()) {
                RC_FAIL(failures);
            }
        },
        metadata, params);
    if (!result.is<rc::detail::SuccessResult>()) {
        std::ostringstream text;
        rc::detail::printResultMessage(result, text);
        ADD_FAILURE() << text.str();
    }
}

std::vector<spec_ptr> simpler(const spec& described)
{
    std::vector<spec_ptr> all;
    const auto change = [&](auto member, auto value) {
        auto changed       = std::make_shared<spec>(described);
        (*changed).*member = value;
        all.push_back(changed);
    };
    if (described.item != nullptr) {
        all.push_back(described.item);
    }
    for (std::size_t i = 0; i < described.parts.size(); ++i) {
        all.push_back(described.parts[i].item);
        auto parts = described.parts;
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
        change(&spec::parts, parts);
    }
    for (const std::uint64_t length : lower(described.length)) {
        change(&spec::length, length);
    }
    for (const std::uint64_t count : lower(described.count)) {
        change(&spec::count, count);
    }
    simpler_dims(described.dims, [&](const std::vector<dim>& dims) { change(&spec::dims, dims); });
    for (const std::int64_t lb : nearer(described.lb)) {
        change(&spec::lb, lb);
    }
    for (const std::int64_t extent : nearer(described.extent)) {
        change(&spec::extent, extent);
    }
    for (std::size_t i = 0; i < described.parts.size(); ++i) {
        simpler_part(described.parts[i], [&](const spec_part& part) {
            auto parts = described.parts;
            parts[i]   = part;
            change(&spec::parts, parts);
        });
    }
    if (described.item != nullptr) {
        for (const spec_ptr& item : simpler(*described.item)) {
            change(&spec::item, item);
        }
    }
    return all;
}

} // namespace ucxl::test
