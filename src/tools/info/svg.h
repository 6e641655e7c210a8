// Text of an SVG picture, shape by shape. Attributes that begin with "data-" say what a shape stands for.
//
//     svg_picture picture(960, 200);
//     picture.add_rect({.x = 10, .y = 10, .width = 80, .height = 20}, R"(fill="#0072b2")", "a block");
//     std::string text = picture.text();
#pragma once

#include <string>
#include <string_view>

namespace ucxl::info
{

// For text and attributes of XML. What is neither printable ASCII nor a newline becomes "?".
std::string escape_xml(std::string_view text);

struct rectangle {
    double x, y, width, height;

    double right() const { return x + width; }
    double bottom() const { return y + height; }
};

class svg_picture
{
public:
    explicit svg_picture(double width) : _width(width) {}

    // `attributes` go in as they are; the other texts are escaped. `hint` is shown when a pointer rests on the shape.
    void add_rect(const rectangle& place, std::string_view attributes, std::string_view hint = {});
    // Joins the lower edge of one rectangle to the upper edge of another one.
    void add_band(const rectangle& from, const rectangle& to, std::string_view attributes);
    void add_line(double x1, double y1, double x2, double y2, std::string_view attributes);
    void add_text(double x, double y, std::string_view attributes, std::string_view text);

    // The whole document.
    std::string text(double height, std::string_view title) const;

private:
    double _width;
    std::string _shapes;
};

} // namespace ucxl::info
