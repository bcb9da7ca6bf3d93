# Libraries of MetaFork files, made at build time.
#
#   list(APPEND CMAKE_MODULE_PATH ...)    # what `metafork cmake-dir` prints
#   include(MetaFork)
#   metafork_add_library(kernels SOURCES smooth.mf matmul.mf)
#   target_link_libraries(app PRIVATE kernels)
#
# metafork_add_library(TARGET SOURCES FILE... [STATIC] [CPU] [BACKEND B] [MACHINE M] [OPTIONS WORD...])
#
# Each FILE becomes a shared library (STATIC: a static one) beside its header, which TARGET brings with it.  nvcc compiles it
# where there is a GPU; else, or with CPU, kernels run on the processor.  With BACKEND ptx or opencl a C compiler is enough.
# OPTIONS are further words for `metafork build`: `OPTIONS --line-directives` makes Nsight show the lines of FILE.
# It is built anew where the file or one of its own headers has changed.
find_program(METAFORK_EXECUTABLE metafork REQUIRED)

function(metafork_add_library target)
  cmake_parse_arguments(PARSE_ARGV 1 own "STATIC;CPU" "BACKEND;MACHINE" "SOURCES;OPTIONS")
  if(own_UNPARSED_ARGUMENTS OR NOT own_SOURCES)
    message(FATAL_ERROR "metafork_add_library(TARGET SOURCES FILE... [STATIC] [CPU] [BACKEND B] [MACHINE M] [OPTIONS WORD...])")
  endif()
  set(suffix ${CMAKE_SHARED_LIBRARY_SUFFIX})
  set(words ${own_OPTIONS})
  if(own_STATIC)
    set(suffix .a)
    list(APPEND words --static-library)
  endif()
  if(own_CPU)
    list(APPEND words --cpu)
  endif()
  if(own_BACKEND)
    list(APPEND words --backend ${own_BACKEND})
  endif()
  if(own_MACHINE)
    list(APPEND words --machine ${own_MACHINE})
  endif()
  add_library(${target} INTERFACE)
  foreach(source IN LISTS own_SOURCES)
    get_filename_component(path "${source}" ABSOLUTE)
    get_filename_component(stem "${source}" NAME_WE)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.metafork/${stem}")
    set(library "${folder}/lib${stem}${suffix}")
    add_custom_command(
      OUTPUT "${library}"
      COMMAND "${METAFORK_EXECUTABLE}" build "${path}" -o "${library}" --depfile "${library}.d" ${words}
      DEPENDS "${path}"
      DEPFILE "${library}.d"
      COMMENT "metafork build ${source}"
      VERBATIM)
    add_custom_target(${target}_${stem} DEPENDS "${library}")
    add_dependencies(${target} ${target}_${stem})
    target_link_libraries(${target} INTERFACE "${library}")
    target_include_directories(${target} INTERFACE "${folder}" "${folder}/include")
  endforeach()
  if(own_STATIC)
    target_link_libraries(${target} INTERFACE -lstdc++ -lm ${CMAKE_DL_LIBS} -lpthread)
    if(NOT own_CPU AND (NOT own_BACKEND OR own_BACKEND STREQUAL cuda))
      find_package(CUDAToolkit QUIET)
      if(TARGET CUDA::cudart)
        target_link_libraries(${target} INTERFACE CUDA::cudart)
      endif()
    endif()
  endif()
endfunction()
