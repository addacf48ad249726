# TW_UNITY: compiles the sources of each target in groups, as one translation unit each. Most of the time goes into what the
# headers of libraries make of every file again: 25 files of the relay take 46 s one by one, and 12 s as one. Of tests only
# what ends in _test.cpp is grouped: some of them compile a file of the product a second way. Only for builds
# that nobody measures and that are not the only ones: that each file compiles by itself, the others show, and ./dev tidy
# of what changed.
#
# GCC lets classes hold what is in an unnamed namespace only in the file it was told to compile, which is another one here:
# such a part stands in a namespace with a name, or in the class.

# tw_targets_below(FOLDER RESULT)
function(tw_targets_below folder result)
    get_property(found DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    foreach(each ${below})
        tw_targets_below(${each} more)
        list(APPEND found ${more})
    endforeach()
    set(${result} ${found} PARENT_SCOPE)
endfunction()

# To be called when all targets are there.
function(tw_group_sources)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(targets "")
    # What is a name in one file may be hidden by another's.
    target_compile_options(tw_options INTERFACE $<$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>:-Wno-shadow>)
    foreach(room snapshot map proxy tests)
        tw_targets_below(${PROJECT_SOURCE_DIR}/${room} below)
        list(APPEND targets ${below})
    endforeach()
    set(lines "")
    foreach(target ${targets})
        get_target_property(type ${target} TYPE)
        # tests/proxy/record/new_counter_test.cpp takes the place of some files of these two.
        if(NOT type MATCHES "STATIC_LIBRARY|EXECUTABLE" OR target MATCHES "^tw_(record|filter)$")
            continue()
        endif()
        get_target_property(sources ${target} SOURCES)
        get_target_property(folder ${target} SOURCE_DIR)
        foreach(source ${sources})
            cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
            if(source MATCHES "[.]cpp$" AND (source MATCHES "_test[.]cpp$" OR NOT folder MATCHES "^${PROJECT_SOURCE_DIR}/tests"))
                string(APPEND lines "${target} ${source}\n")
                set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
            endif()
        endforeach()
        set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    endforeach()
    set(list ${PROJECT_BINARY_DIR}/sources.txt)
    file(WRITE ${list} "${lines}")
    execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/one_unit.py ${list}
                    OUTPUT_VARIABLE groups OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    string(REPLACE "\n" ";" groups "${groups}")
    foreach(line ${groups})
        string(REPLACE " " ";" parts "${line}")
        list(GET parts 0 target)
        list(GET parts 1 source)
        list(GET parts 2 group)
        set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
    endforeach()
endfunction()
