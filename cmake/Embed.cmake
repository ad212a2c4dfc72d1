# embed_yaml(dir prefix): compiles every dir/*.yaml into the program, so that one file is all there is to
# copy to a machine. Two parallel arrays, sorted by name: PREFIX_names and PREFIX_texts.
function(embed_yaml dir prefix)
  file(GLOB files CONFIGURE_DEPENDS ${dir}/*.yaml)
  list(SORT files)
  set(out ${CMAKE_BINARY_DIR}/gen/embedded_${prefix}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DPREFIX=${prefix} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/EmbedFiles.cmake VERBATIM)
  set(EMBEDDED_YAML ${EMBEDDED_YAML} ${out} PARENT_SCOPE)
endfunction()

# embed_page(dir): compiles the parts of the report's page into the program.
function(embed_page dir)
  file(GLOB files CONFIGURE_DEPENDS ${dir}/*.html ${dir}/*.css ${dir}/*.js)
  set(out ${CMAKE_BINARY_DIR}/gen/embedded_page.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/EmbedPage.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/EmbedPage.cmake VERBATIM)
  set(EMBEDDED_PAGE ${out} PARENT_SCOPE)
endfunction()

# embed_text(file symbol header): compiles a file into the program as the text SYMBOL, which the header declares.
function(embed_text file symbol header)
  set(out ${CMAKE_BINARY_DIR}/gen/embedded_${symbol}.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFILE=${file} -DSYMBOL=${symbol} -DHEADER=${header}
      -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${file} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake VERBATIM)
  set(EMBEDDED_TEXT ${EMBEDDED_TEXT} ${out} PARENT_SCOPE)
endfunction()
