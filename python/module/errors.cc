// posattn::Error as posattn.Error of Python, with its parts.
#include "module.h"
#include "posattn/base/error.h"

namespace posattn::python {

py::str text_of(std::string_view text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

int checked_threads(int threads) {
  if (threads < 1 || threads > 1024) {
    throw Error(ExitCode::usage, "threads = " + std::to_string(threads), "1 to 1024");
  }
  return threads;
}

void add_errors(py::module_& /*module*/) {
  // pybind11 wants a copy: NOLINTNEXTLINE(performance-unnecessary-value-param)
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const py::object raised =
          py::module_::import("posattn.errors")
              .attr("of_library")(text_of(error.problem()), text_of(error.expected()),
                                  text_of(error.hint()), static_cast<int>(error.code()));
      PyErr_SetObject(py::type::of(raised).ptr(), raised.ptr());
    }
  });
}

}  // namespace posattn::python
