# build_id(sources...): writes build_id.c, the version with a digest of the sources and of how they are compiled, so
# that two builds which may differ in what they do or in how they lay out their data can be told apart. Beside it is what
# kind of build it is, in words.
function(build_id)
  set(out ${CMAKE_BINARY_DIR}/gen/build_id.c)
  set(list ${CMAKE_BINARY_DIR}/gen/build_id.txt)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  set(how "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}} ${STOKER_SANITIZE}")
  list(SORT ARGN)
  string(REPLACE ";" "\n" text "${ARGN}")
  file(GENERATE OUTPUT ${list} CONTENT "${how}\n${text}\n")
  # each commit adds a line to the log of HEAD; in a tarball there is none
  find_program(STOKER_GIT git)
  set(head "")
  if(STOKER_GIT AND EXISTS ${CMAKE_SOURCE_DIR}/.git)
    execute_process(COMMAND ${STOKER_GIT} -C ${CMAKE_SOURCE_DIR} rev-parse --path-format=absolute --git-path logs/HEAD
                    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(NOT EXISTS "${head}")
      set(head "")
    endif()
  endif()
  set(traits "for ${CMAKE_SYSTEM_PROCESSOR}, with")
  if(STOKER_PORTABLE)
    string(PREPEND traits "portable, ")
  endif()
  if(NOT TARGET URING)
    string(APPEND traits "out")
  endif()
  string(APPEND traits " io_uring")
  if(STOKER_SANITIZE)
    string(APPEND traits ", with sanitizers (${STOKER_SANITIZE})")
  endif()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DLIST=${list} -DVERSION=${PROJECT_VERSION} -DROOT=${CMAKE_SOURCE_DIR}
            -DCOMMIT=${STOKER_COMMIT} "-DTRAITS=${traits}" -DGIT=$<$<BOOL:${STOKER_GIT}>:${STOKER_GIT}> -P ${CMAKE_SOURCE_DIR}/cmake/BuildId.cmake
    DEPENDS ${ARGN} ${list} ${head} ${CMAKE_SOURCE_DIR}/cmake/BuildId.cmake VERBATIM)
  set(BUILD_ID ${out} PARENT_SCOPE)
endfunction()

# third_party(NAME header library [OPTIONAL]): the target NAME of a library outside the project; its static archive where
# the program is to be portable. Without the library the target is missing, which is an error unless OPTIONAL.
function(third_party name header library)
  find_path(STOKER_${name}_INCLUDE ${header})
  set(file ${library})
  if(STOKER_PORTABLE)
    set(file lib${library}.a)
  endif()
  find_library(STOKER_${name}_${file} NAMES ${file})
  set(found ${STOKER_${name}_${file}})
  mark_as_advanced(STOKER_${name}_INCLUDE STOKER_${name}_${file})
  if(STOKER_${name}_INCLUDE AND found)
    add_library(${name} INTERFACE IMPORTED)
    target_include_directories(${name} INTERFACE ${STOKER_${name}_INCLUDE})
    target_link_libraries(${name} INTERFACE ${found})
  elseif(NOT ARGN)
    message(FATAL_ERROR "${header} or lib${library} is missing: install the development files of the library, or run tools/setup.sh build")
  endif()
endfunction()
