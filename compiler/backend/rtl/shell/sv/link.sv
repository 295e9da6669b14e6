// The command protocol between the host and the frame buffers; README.md has its bytes.
//
// Requests are handled one after another, each answered by one reply. A request's header has a checksum of its own,
// so that nothing is written through a damaged address; a payload has another. After a damaged header the link hunts
// for the next pair of sync bytes.
module penstock_link #(
    parameter int PORTS = 1,           // buffers that the host reaches
    parameter int LANES = 1,           // bytes of the widest word
    parameter int IDENTITY_BYTES = 1,
    parameter logic [PORTS*16-1:0] WORD_BYTES = '0,  // by port, the first one lowest
    parameter logic [PORTS*24-1:0] WORDS = '0,
    parameter logic [PORTS-1:0] WRITABLE = '0,       // the host writes it; otherwise the host reads it
    parameter int WATCHDOG_BITS = 18                 // a frame that takes 2^this cycles is answered before its end
) (
    input  logic               clk,
    input  logic               rst,
    // bytes from and to the host
    input  logic [7:0]         in_data,
    input  logic               in_valid,
    output logic               in_ready,
    output logic [7:0]         out_data,
    output logic               out_valid,
    input  logic               out_ready,
    // words of the buffers; what is read is there three cycles after word_re
    output logic [7:0]         word_port,
    output logic [23:0]        word_addr,
    output logic               word_we,
    output logic [LANES*8-1:0] word_wdata,
    output logic               word_re,
    input  logic [LANES*8-1:0] word_rdata,
    // the identity block, one cycle after its address
    output logic [9:0]         identity_addr,
    input  logic [7:0]         identity_data,
    // the core
    output logic               core_start,
    output logic               core_rst,
    input  logic               core_done,
    output logic               busy,
    input  logic               overflow,
    output logic               link_ok
);
    localparam logic [7:0] SYNC_A = 8'hA5, SYNC_B = 8'h5A;
    localparam logic [15:0] LONGEST = 16'd1024;

    localparam logic [7:0] PING = 8'd1, IDENTIFY = 8'd2, WRITE = 8'd3, READ = 8'd4, START = 8'd5, STATUS = 8'd6,
        RESET = 8'd7;

    localparam logic [7:0] OK = 8'd0, BAD_HEADER = 8'd1, BAD_PAYLOAD = 8'd2, BAD_COMMAND = 8'd3, BAD_PORT = 8'd4,
        BAD_RANGE = 8'd5, BUSY = 8'd6, LATE = 8'd7;

    localparam int SHIFT_BITS = LANES > 12 ? LANES * 8 : 96;
    localparam logic [1:0] FROM_WORDS = 2'd0, FROM_IDENTITY = 2'd1, FROM_STATUS = 2'd2;

    typedef enum logic [4:0] {
        HUNT_A, HUNT_B, HEADER, DECODE, PORT, RANGE, PAYLOAD, PAYLOAD_CHECK, PAYLOAD_END, SKIP, WAIT_CORE,
        REPLY, REPLY_HEADER, REPLY_NEXT, REPLY_WAIT, REPLY_BYTE, REPLY_CHECK
    } state_t;

    // CRC-16, polynomial 0x1021, highest bit first; over data with its own checksum appended it is 0.
    function automatic logic [15:0] crc_of(input logic [15:0] crc, input logic [7:0] data);
        crc_of = crc ^ {data, 8'h00};
        for (int i = 0; i < 8; i++) crc_of = crc_of[15] ? {crc_of[14:0], 1'b0} ^ 16'h1021 : {crc_of[14:0], 1'b0};
    endfunction

    state_t state;
    logic [15:0] crc;
    logic [3:0] index;
    logic [7:0] command, tag, status, refusal;
    logic [15:0] length, left, lane, port_bytes;
    logic [23:0] offset, range_addr, port_words;
    logic port_writable, port_known;
    logic [1:0] source;
    logic [SHIFT_BITS-1:0] shift;
    logic [31:0] cycles, frames;
    logic [3:0] reset_count;
    logic [7:0] header_byte;
    logic [95:0] status_block;
    logic dropped;

    assign in_ready = state == HUNT_A || state == HUNT_B || state == HEADER || state == PAYLOAD
        || state == PAYLOAD_CHECK || state == SKIP;
    assign out_valid = state == REPLY_HEADER || state == REPLY_BYTE || state == REPLY_CHECK;
    assign status_block = {cycles, frames, 24'd0, 6'd0, dropped, busy};

    always_comb begin
        case (index)
            4'd0: header_byte = SYNC_B;
            4'd1: header_byte = SYNC_A;
            4'd2: header_byte = status;
            4'd3: header_byte = tag;
            4'd4: header_byte = length[7:0];
            4'd5: header_byte = length[15:8];
            default: header_byte = crc[15:8];
        endcase
        if (state == REPLY_HEADER) out_data = header_byte;
        else if (state == REPLY_CHECK) out_data = crc[15:8];
        else if (source == FROM_IDENTITY) out_data = identity_data;
        else out_data = shift[7:0];
    end

    always_comb begin
        if (!port_known || port_writable != (command == WRITE)) refusal = BAD_PORT;
        else if (busy) refusal = BUSY;
        else if (left != 16'd0 && (left < port_bytes || range_addr >= port_words)) refusal = BAD_RANGE;
        else refusal = OK;
    end

    // The core's state: running or not, for how long, how often.
    always_ff @(posedge clk) begin
        core_rst <= rst || reset_count != 4'd0;
        if (rst || reset_count != 4'd0) begin
            busy <= 1'b0;
            cycles <= 32'd0;
            frames <= 32'd0;
        end else if (core_start) begin
            busy <= 1'b1;
            cycles <= 32'd0;
        end else if (busy) begin
            if (core_done) begin
                busy <= 1'b0;
                frames <= frames + 32'd1;
            end
            if (cycles != 32'hFFFFFFFF) cycles <= cycles + 32'd1;
        end
    end

    always_ff @(posedge clk) begin
        word_we <= 1'b0;
        word_re <= 1'b0;
        core_start <= 1'b0;
        if (word_we) word_addr <= word_addr + 24'd1;
        if (reset_count != 4'd0) reset_count <= reset_count - 4'd1;
        if (overflow) dropped <= 1'b1;

        case (state)
            HUNT_A: if (in_valid && in_data == SYNC_A) state <= HUNT_B;

            HUNT_B: begin
                crc <= 16'hFFFF;
                index <= 4'd0;
                if (in_valid) begin
                    if (in_data == SYNC_B) state <= HEADER;
                    else if (in_data != SYNC_A) state <= HUNT_A;
                end
            end

            HEADER: if (in_valid) begin
                crc <= crc_of(crc, in_data);
                index <= index + 4'd1;
                case (index)
                    4'd0: command <= in_data;
                    4'd1: tag <= in_data;
                    4'd2: word_port <= in_data;
                    4'd3: offset[7:0] <= in_data;
                    4'd4: offset[15:8] <= in_data;
                    4'd5: offset[23:16] <= in_data;
                    4'd6: length[7:0] <= in_data;
                    4'd7: length[15:8] <= in_data;
                    default: ;
                endcase
                if (index == 4'd9) state <= DECODE;
            end

            DECODE: begin
                state <= REPLY;
                status <= OK;
                length <= 16'd0;
                link_ok <= crc == 16'd0;
                if (crc != 16'd0) begin
                    status <= BAD_HEADER;
                end else begin
                    case (command)
                        PING: ;
                        IDENTIFY: begin
                            source <= FROM_IDENTITY;
                            length <= IDENTITY_BYTES[15:0];
                        end
                        WRITE, READ: begin
                            source <= FROM_WORDS;
                            length <= length;
                            state <= PORT;
                        end
                        START: begin
                            source <= FROM_STATUS;
                            if (busy) begin
                                status <= BUSY;
                            end else begin
                                core_start <= 1'b1;
                                length <= 16'd12;
                                state <= WAIT_CORE;
                            end
                        end
                        STATUS: begin
                            source <= FROM_STATUS;
                            length <= 16'd12;
                        end
                        RESET: begin
                            reset_count <= 4'd15;
                            dropped <= 1'b0;
                        end
                        default: status <= BAD_COMMAND;
                    endcase
                end
            end

            PORT: begin
                port_known <= 1'b0;
                for (int p = 0; p < PORTS; p++) begin
                    if (word_port == p[7:0]) begin
                        port_known <= 1'b1;
                        port_bytes <= WORD_BYTES[16*p+:16];
                        port_words <= WORDS[24*p+:24];
                        port_writable <= WRITABLE[p];
                    end
                end
                range_addr <= offset;
                word_addr <= offset;
                left <= length;
                lane <= 16'd0;
                crc <= 16'hFFFF;
                index <= 4'd0;
                if (length == 16'd0 || length > LONGEST) begin
                    status <= BAD_RANGE;
                    length <= 16'd0;
                    state <= REPLY;
                end else begin
                    state <= RANGE;
                end
            end

            // Counts through the words that are asked for: no divider for the odd word sizes.
            RANGE: begin
                if (refusal != OK) begin
                    status <= refusal;
                    left <= length + 16'd2;
                    state <= SKIP;
                    if (command == READ) begin
                        length <= 16'd0;
                        state <= REPLY;
                    end
                end else if (left == 16'd0) begin
                    left <= length;
                    state <= command == WRITE ? PAYLOAD : REPLY;
                end else begin
                    left <= left - port_bytes;
                    range_addr <= range_addr + 24'd1;
                end
            end

            PAYLOAD: if (in_valid) begin
                crc <= crc_of(crc, in_data);
                for (int b = 0; b < LANES; b++) if (lane == b[15:0]) word_wdata[8*b+:8] <= in_data;
                left <= left - 16'd1;
                if (lane + 16'd1 == port_bytes) begin
                    lane <= 16'd0;
                    word_we <= 1'b1;
                end else begin
                    lane <= lane + 16'd1;
                end
                if (left == 16'd1) state <= PAYLOAD_CHECK;
            end

            PAYLOAD_CHECK: if (in_valid) begin
                crc <= crc_of(crc, in_data);
                index <= index + 4'd1;
                if (index == 4'd1) state <= PAYLOAD_END;
            end

            PAYLOAD_END: begin
                status <= crc == 16'd0 ? OK : BAD_PAYLOAD;
                link_ok <= crc == 16'd0;
                length <= 16'd0;
                state <= REPLY;
            end

            // The payload of a refused request and its checksum.
            SKIP: if (in_valid) begin
                left <= left - 16'd1;
                if (left == 16'd1) begin
                    length <= 16'd0;
                    state <= REPLY;
                end
            end

            WAIT_CORE: begin
                if (!core_start && !busy) begin
                    state <= REPLY;
                end else if (!core_start && cycles[WATCHDOG_BITS]) begin
                    status <= LATE;
                    state <= REPLY;
                end
            end

            REPLY: begin
                index <= 4'd0;
                crc <= 16'hFFFF;
                left <= length;
                lane <= 16'd0;
                identity_addr <= 10'd0;
                state <= REPLY_HEADER;
            end

            REPLY_HEADER: if (out_ready) begin
                index <= index + 4'd1;
                if (index >= 4'd6) crc <= {crc[7:0], 8'h00};
                else if (index >= 4'd2) crc <= crc_of(crc, header_byte);
                if (index == 4'd7) begin
                    crc <= 16'hFFFF;
                    index <= 4'd0;
                    shift[95:0] <= status_block;
                    state <= length == 16'd0 ? HUNT_A : REPLY_NEXT;
                end
            end

            REPLY_NEXT: begin
                index <= 4'd0;
                if (source == FROM_WORDS && lane == 16'd0) begin
                    word_re <= 1'b1;
                    state <= REPLY_WAIT;
                end else begin
                    state <= REPLY_BYTE;
                end
            end

            REPLY_WAIT: begin
                index <= index + 4'd1;
                if (index == 4'd3) begin
                    shift[LANES*8-1:0] <= word_rdata;
                    index <= 4'd0;
                    state <= REPLY_BYTE;
                end
            end

            REPLY_BYTE: if (out_ready) begin
                crc <= crc_of(crc, out_data);
                shift <= shift >> 8;
                left <= left - 16'd1;
                identity_addr <= identity_addr + 10'd1;
                if (lane + 16'd1 == port_bytes) begin
                    lane <= 16'd0;
                    word_addr <= word_addr + 24'd1;
                end else begin
                    lane <= lane + 16'd1;
                end
                state <= left == 16'd1 ? REPLY_CHECK : REPLY_NEXT;
            end

            REPLY_CHECK: if (out_ready) begin
                crc <= {crc[7:0], 8'h00};
                index <= index + 4'd1;
                if (index == 4'd1) state <= HUNT_A;
            end

            default: state <= HUNT_A;
        endcase

        if (rst) begin
            state <= HUNT_A;
            reset_count <= 4'd0;
            dropped <= 1'b0;
            link_ok <= 1'b0;
        end
    end
endmodule
