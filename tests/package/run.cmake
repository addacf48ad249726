# Installs the libraries of a build into a new folder, builds the program beside this file against them alone, and
# checks what it prints. cmake -D BUILD=... -D WORK=... -D CXX=... -D FLAGS=... -D GENERATOR=... -P run.cmake
cmake_minimum_required(VERSION 3.25)
set(here ${CMAKE_CURRENT_LIST_DIR})

function(run)
    execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "${ARGN}:\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component development --prefix ${WORK}/prefix)
# Away from the tree, so that no header of it is found by accident.
file(COPY ${here}/CMakeLists.txt ${here}/main.cpp DESTINATION ${WORK}/source)
run(${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK}/prefix
    -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${WORK}/build)

file(READ ${here}/../data/spec/vectors.json vectors)
string(JSON delta GET "${vectors}" snapshot_delta 0 delta_bytes)
string(JSON crc GET "${vectors}" snapshot_delta 0 crc)
string(JSON items LENGTH "${vectors}" snapshot_delta 0 new)
string(JSON datagram GET "${vectors}" packets 0 bytes)
string(JSON chunks GET "${vectors}" packets 0 num_chunks)
run(${WORK}/build/consumer ${here}/../fuzz/corpus/map/everything.map ${delta} ${datagram})
if(NOT output MATCHES "^map [0-9]+ x [0-9]+, snapshot of ${items} items with crc ${crc}, packet of ${chunks} chunks\n$")
    message(FATAL_ERROR "not expected: ${output}")
endif()

# What is read beside the program, where the tree has it: the pages, with all that they show and name. By DESTDIR, for
# /etc stays /etc whatever the prefix.
if(EXISTS ${here}/../../docs)
    run(${CMAKE_COMMAND} -E env DESTDIR=${WORK}/files ${CMAKE_COMMAND} --install ${BUILD} --component files)
    file(GLOB_RECURSE installed RELATIVE ${WORK}/files ${WORK}/files/*)
    foreach(file docs/api.md docs/openapi.json docs/live-page.png)
        if(NOT installed MATCHES "/twscope/${file}(;|$)")
            message(FATAL_ERROR "${file} is not installed")
        endif()
    endforeach()
endif()
file(READ ${BUILD}/proxy/package/twscope.service unit)
if(NOT unit MATCHES "^\\[Unit\\].*\nStartLimitIntervalSec=0\n.*\n\\[Service\\].*\nRestartSec=[1-9]")
    message(FATAL_ERROR "the unit gives up: ${unit}")
endif()

# A component that does not exist is refused by name.
file(WRITE ${WORK}/unknown/CMakeLists.txt
    "cmake_minimum_required(VERSION 3.25)\nproject(unknown LANGUAGES NONE)\nfind_package(twscope REQUIRED COMPONENTS moon)\n")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/unknown -B ${WORK}/unknown/build -G ${GENERATOR} -D CMAKE_PREFIX_PATH=${WORK}/prefix
    OUTPUT_QUIET ERROR_VARIABLE refusal RESULT_VARIABLE result)
if(result EQUAL 0 OR NOT refusal MATCHES "no component moon")
    message(FATAL_ERROR "an unknown component was not refused: ${refusal}")
endif()
