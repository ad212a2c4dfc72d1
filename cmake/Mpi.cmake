# A module for each MPI library whose compiler is here, beside the program. The program does not need
# them: it loads one when that library's launcher started it.
option(STOKER_MPI "Build modules for the MPI libraries found" ON)

function(mpi_module library compiler)
  set(module ${CMAKE_BINARY_DIR}/stoker_mpi_${library}.so)
  add_custom_command(OUTPUT ${module}
    COMMAND ${compiler} -std=gnu17 -O2 -g -Wall -Wextra -fPIC -shared -fvisibility=hidden
            -I${CMAKE_SOURCE_DIR}/src -o ${module} ${CMAKE_SOURCE_DIR}/src/comm/mpi.c
    DEPENDS ${CMAKE_SOURCE_DIR}/src/comm/mpi.c ${CMAKE_SOURCE_DIR}/src/comm/mpi_module.h
    COMMENT "Building the module for ${library}" VERBATIM)
  add_custom_target(mpi_${library} ALL DEPENDS ${module})
  add_dependencies(stoker mpi_${library})
  install(FILES ${module} DESTINATION lib/stoker)
  message(STATUS "MPI module: ${library} (${compiler})")
endfunction()

if(STOKER_MPI)
  find_program(STOKER_MPICC_OPENMPI mpicc.openmpi)
  find_program(STOKER_MPICC_MPICH mpicc.mpich)
  find_program(STOKER_MPICC mpicc)
  set(openmpi ${STOKER_MPICC_OPENMPI})
  set(mpich ${STOKER_MPICC_MPICH})
  if(STOKER_MPICC)
    # of which family the plain one is; only Open MPI's knows this option
    execute_process(COMMAND ${STOKER_MPICC} --showme:version RESULT_VARIABLE other
      OUTPUT_QUIET ERROR_QUIET)
    if(NOT other AND NOT openmpi)
      set(openmpi ${STOKER_MPICC})
    elseif(other AND NOT mpich)
      set(mpich ${STOKER_MPICC})
    endif()
  endif()
  if(openmpi)
    mpi_module(openmpi ${openmpi})
  endif()
  if(mpich)
    mpi_module(mpich ${mpich})
  endif()
endif()
