#include "scale.h"

#include <algorithm>
#include <set>

namespace ucxl::info
{

namespace
{

// Pixels of every piece of a block beside those for its bytes.
constexpr double least_width = 3;
// Pixels for its bytes that a piece of a block should have, at the median.
constexpr double readable_width = 6;
// The length of the longest piece that is not shortened, in medians: the first one that leaves blocks readable.
constexpr std::size_t ratios[] = {1024, 256, 64, 16, 8, 4, 2, 1};

double pixels_per_byte(std::span<const std::vector<piece>> lines, std::size_t longest, double width)
{
    double least = width;
    for (const std::vector<piece>& line : lines) {
        double length = 0, pixels = width;
        for (const piece& part : line) {
            length += static_cast<double>(std::min(part.bytes.length(), longest));
            pixels -= part.is_used ? least_width : 0;
        }
        least = length > 0 ? std::min(least, pixels / length) : least;
    }
    return least;
}

// 1 if there are none.
std::size_t median_length(std::span<const std::vector<piece>> lines)
{
    std::vector<std::size_t> lengths;
    for (const std::vector<piece>& line : lines) {
        for (const piece& part : line) {
            if (part.is_used) {
                lengths.push_back(part.bytes.length());
            }
        }
    }
    if (lengths.empty()) {
        return 1;
    }
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::ranges::nth_element(lengths, middle);
    return *middle;
}

} // namespace

double scale::width_of(const piece& part) const
{
    return pixels_per_byte * static_cast<double>(std::min(part.bytes.length(), longest)) +
           (part.is_used ? least_width : 0);
}

std::vector<piece> pieces_between(std::span<const extent> blocks)
{
    std::set<std::ptrdiff_t> ends;
    for (const extent& block : blocks) {
        ends.insert({block.begin, block.end});
    }
    std::vector<piece> line;
    for (auto end = ends.begin(); end != ends.end() && std::next(end) != ends.end(); ++end) {
        const extent bytes{*end, *std::next(end)};
        const auto covers = [&](const extent& block) { return block.begin <= bytes.begin && bytes.end <= block.end; };
        line.push_back({bytes, std::ranges::any_of(blocks, covers)});
    }
    return line;
}

scale fit(std::span<const std::vector<piece>> lines, double width)
{
    const std::size_t median = median_length(lines);
    scale chosen{};
    for (const std::size_t ratio : ratios) {
        chosen.longest         = ratio * median; // a layout has less than 2^46 bytes
        chosen.pixels_per_byte = pixels_per_byte(lines, chosen.longest, width);
        if (chosen.pixels_per_byte * static_cast<double>(median) >= readable_width) {
            break;
        }
    }
    return chosen;
}

std::map<std::ptrdiff_t, double> places_on(const std::vector<piece>& line, const scale& by, double first_place)
{
    std::map<std::ptrdiff_t, double> places;
    double place = first_place;
    for (const piece& each : line) {
        places[each.bytes.begin] = place;
        place += by.width_of(each);
        places[each.bytes.end] = place;
    }
    return places;
}

} // namespace ucxl::info
