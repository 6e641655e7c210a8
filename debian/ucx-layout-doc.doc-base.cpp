Document: ucx-layout-cpp
Title: ucx-layout, interface for C++
Author: the ucx-layout authors
Abstract: Layouts, windows and plans: every class and function.
Section: Programming/C++

Format: HTML
Index: /usr/share/doc/ucx-layout-doc/html/cpp/index.html
Files: /usr/share/doc/ucx-layout-doc/html/cpp/*.html
