# Embeds the files of experiments/ and programs/, and what pages carry in themselves, into the library
# as string literals, so that the program finds them wherever it is installed. Run by the build with
#   -DFILES=a;b -DOUTPUT=x.cc -DFUNCTION=f
# it writes the function f() of src/posattn/base/embedded_file.h.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/Embed.cmake.\n#include \"posattn/base/embedded_file.h\"\n\n")
  string(APPEND text "namespace posattn {\n\nconst std::vector<EmbeddedFile>& ${FUNCTION}() {\n")
  string(APPEND text "  static const std::vector<EmbeddedFile> files = {\n")
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    # As bytes in hexadecimal: no character of the text can end or change a literal.
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\"\n     \"" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "\\\\x\\1" bytes "${bytes}")
    string(APPEND text "      {\"${name}\",\n     \"${bytes}\"},\n")
  endforeach()
  string(APPEND text "  };\n  return files;\n}\n\n}  // namespace posattn\n")
  file(WRITE ${OUTPUT} "${text}")
  return()
endif()

set(POSATTN_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})
function(posattn_embed output function)  # and the files
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${output})
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARGN}" -DOUTPUT=${source} -DFUNCTION=${function}
            -P ${POSATTN_EMBED_SCRIPT}
    DEPENDS ${ARGN} ${POSATTN_EMBED_SCRIPT} VERBATIM
    COMMENT "Embedding ${output}")
  target_sources(posattn_core PRIVATE ${source})
  # Every compiler that can build the rest takes literals of more than the 65536 bytes it must.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()

file(GLOB POSATTN_PROGRAMS CONFIGURE_DEPENDS programs/*.par)
posattn_embed(embedded_programs.cc embedded_programs ${POSATTN_PROGRAMS})
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")  # which has neither experiments nor reports
  file(GLOB POSATTN_EXPERIMENTS CONFIGURE_DEPENDS experiments/*.toml experiments/published.csv)
  posattn_embed(embedded_experiments.cc embedded_experiments ${POSATTN_EXPERIMENTS})
  file(GLOB_RECURSE POSATTN_PAGE_ASSETS CONFIGURE_DEPENDS src/posattn/report/*.css
    src/posattn/report/*.js src/posattn/report/*.html)
  posattn_embed(embedded_page_assets.cc embedded_page_assets ${POSATTN_PAGE_ASSETS})
endif()
