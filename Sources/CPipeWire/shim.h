/* SPDX-License-Identifier: MIT */
/* libpipewire-0.3 and libspa-0.2; loop and core methods are macros that Swift cannot import. */
#pragma once
#include <stdint.h>
#include <pipewire/pipewire.h>
#include <spa/buffer/buffer.h>
#include <spa/buffer/meta.h>
#include <spa/debug/types.h>
#include <spa/node/command.h>
#include <spa/param/audio/format-utils.h>
#include <spa/param/buffers.h>
#include <spa/param/format.h>
#include <spa/param/format-utils.h>
#include <spa/param/video/format-utils.h>
#include <spa/param/video/type-info.h>
#include <spa/pod/builder.h>
#include <spa/pod/iter.h>
#include <spa/utils/result.h>

static inline int cpw_loop_get_fd(struct pw_loop *loop) { return pw_loop_get_fd(loop); }
static inline void cpw_loop_enter(struct pw_loop *loop) { pw_loop_enter(loop); }
static inline void cpw_loop_leave(struct pw_loop *loop) { pw_loop_leave(loop); }
static inline int cpw_loop_iterate(struct pw_loop *loop, int timeout_ms) { return pw_loop_iterate(loop, timeout_ms); }
static inline int cpw_core_add_listener(struct pw_core *core, struct spa_hook *hook, const struct pw_core_events *events, void *data) { return pw_core_add_listener(core, hook, events, data); }
static inline int cpw_core_sync(struct pw_core *core, uint32_t id, int seq) { return pw_core_sync(core, id, seq); }
static inline struct pw_registry *cpw_core_get_registry(struct pw_core *core) { return pw_core_get_registry(core, PW_VERSION_REGISTRY, 0); }
static inline int cpw_registry_add_listener(struct pw_registry *registry, struct spa_hook *hook, const struct pw_registry_events *events, void *data) { return pw_registry_add_listener(registry, hook, events, data); }
static inline struct pw_link *cpw_registry_bind_link(struct pw_registry *registry, uint32_t id) { return pw_registry_bind(registry, id, PW_TYPE_INTERFACE_Link, PW_VERSION_LINK, 0); }
static inline struct pw_node *cpw_registry_bind_node(struct pw_registry *registry, uint32_t id) { return pw_registry_bind(registry, id, PW_TYPE_INTERFACE_Node, PW_VERSION_NODE, 0); }
static inline int cpw_node_add_listener(struct pw_node *node, struct spa_hook *hook, const struct pw_node_events *events, void *data) { return pw_node_add_listener(node, hook, events, data); }
static inline int cpw_registry_destroy(struct pw_registry *registry, uint32_t id) { return pw_registry_destroy(registry, id); }
static inline int cpw_link_add_listener(struct pw_link *link, struct spa_hook *hook, const struct pw_link_events *events, void *data) { return pw_link_add_listener(link, hook, events, data); }
static inline int cpw_stream_set_error(struct pw_stream *stream, int code, const char *message) { return pw_stream_set_error(stream, code, "%s", message); }
static inline const char *cpw_strerror(int error) { return spa_strerror(error); }
static inline int cpw_node_suspend(struct pw_node *node)
{
    const struct spa_command command = SPA_NODE_COMMAND_INIT(SPA_NODE_COMMAND_Suspend);
    return pw_node_send_command(node, &command);
}
static inline int cpw_node_enum_params(struct pw_node *node, uint32_t id) { return pw_node_enum_params(node, 0, id, 0, UINT32_MAX, NULL); }
static inline const char *cpw_video_format_name(uint32_t format) { return spa_debug_type_find_short_name(spa_type_video_format, format); }
static inline int cpw_stream_connect_audio(struct pw_stream *stream, uint32_t flags, uint32_t rate)
{
    uint8_t memory[1024];
    struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(memory, sizeof(memory));
    struct spa_audio_info_raw info = SPA_AUDIO_INFO_RAW_INIT(.format = SPA_AUDIO_FORMAT_F32, .rate = rate, .channels = 2, .position = { SPA_AUDIO_CHANNEL_FL, SPA_AUDIO_CHANNEL_FR });
    const struct spa_pod *params[1] = { spa_format_audio_raw_build(&builder, SPA_PARAM_EnumFormat, &info) };
    return pw_stream_connect(stream, SPA_DIRECTION_INPUT, PW_ID_ANY, (enum pw_stream_flags)flags, params, 1);
}
