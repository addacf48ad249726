# How a library is installed for programs outside this tree: the archive, its headers under include/twscope with the
# paths they have here, and the target twscope::NAME, which find_package(twscope COMPONENTS NAME) brings.
include(GNUInstallDirs)
set(TW_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/twscope)

# tw_install_library(TARGET NAME): to be called where the library is made.
function(tw_install_library target name)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} OUTPUT_NAME twscope_${name})
    target_compile_features(${target} PUBLIC cxx_std_20)
    install(TARGETS ${target} EXPORT twscope_${name} COMPONENT development
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/twscope)
    if(TW_PROFILE STREQUAL "use")
        # What only this compiler could link as one whole is of no use to others.
        install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-debug --enable-deterministic-archives
            -R .gnu.lto_* -R .gnu.debuglto_* -N __gnu_lto_v1
            \$ENV{DESTDIR}${CMAKE_INSTALL_FULL_LIBDIR}/libtwscope_${name}.a COMMAND_ERROR_IS_FATAL ANY)"
            COMPONENT development)
    endif()
    install(EXPORT twscope_${name} NAMESPACE twscope:: FILE twscope-${name}.cmake DESTINATION ${TW_PACKAGE_DIR}
            COMPONENT development)
    install(DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/twscope/${folder}
            COMPONENT development FILES_MATCHING PATTERN "*.h")
endfunction()
