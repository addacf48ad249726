# What packages hold is built for what a real run did: TW_PROFILE=gather makes a program that counts what it runs, into
# files beside its objects, and TW_PROFILE=use builds for what was counted, the rooms it runs most as one whole.
# `./dev package` does both, and reads the golden captures in between.
# Only what one thread runs is counted: the same sources give the same counts, and so the same bytes.
set(tw_counted_rooms tw_snapshot tw_map tw_wire tw_record tw_inspect tw_filter)
set(tw_counted_sinks json_buffer.cpp json_items.cpp json_lines.cpp)

if(TW_PROFILE STREQUAL "gather")
    set(tw_profile_options -fprofile-generate -fprofile-update=single)
    target_link_options(twscope PRIVATE -fprofile-generate)
    target_link_options(twscope_completion PRIVATE -fprofile-generate)
elseif(TW_PROFILE STREQUAL "use")
    # The objects hold machine code besides, for programs that link the libraries without this.
    set(tw_profile_options -fprofile-use -fprofile-partial-training -Wno-missing-profile -flto=auto -ffat-lto-objects)
    target_link_options(twscope PRIVATE -flto=auto)
else()
    message(FATAL_ERROR "TW_PROFILE is '${TW_PROFILE}', and has to be 'gather' or 'use'")
endif()

foreach(room ${tw_counted_rooms})
    target_compile_options(${room} PRIVATE ${tw_profile_options})
endforeach()
list(TRANSFORM tw_counted_sinks PREPEND ${PROJECT_SOURCE_DIR}/proxy/sink/)
set_property(SOURCE ${tw_counted_sinks} TARGET_DIRECTORY tw_sink PROPERTY COMPILE_OPTIONS ${tw_profile_options})
