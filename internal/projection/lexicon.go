package projection

import (
	"strings"
	"sync"
)

// The lists below are general: words as they stand in tool names and in questions of any trade. They hold one group a line.

// stopWords are words that say nothing about which tool is meant.
var stopWords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(stopWordList) {
		set[word] = true
	}
	return set
})

const stopWordList = `
a about above after again all also am an and any are as at be because been before being below between both but by can could
did do does doing don done down during each either else etc for from further had has have having he her here hers him his how
however i if in into is it its itself just ll let like m may me might more most must my need needs no nor not of off on
once only or other our ours out over own per please re s same shall she should so some such t than that the their theirs them
then there these they this those through to too under until up upon us ve very via want wants was we were what when where
whether which while who whom whose why will with within without would you your yours
tool tools function functions api apis help using use used
`

// synonyms gives, per stem, the stems that may stand for it.
var synonyms = sync.OnceValue(func() map[string][]string {
	related := map[string][]string{}
	for line := range strings.Lines(synonymList) {
		group := strings.Fields(line)
		for _, word := range group {
			for _, other := range group {
				relate(related, stem(word), stem(other))
			}
		}
	}
	return related
})

func relate(related map[string][]string, word, other string) {
	if word == other {
		return
	}
	for _, known := range related[word] {
		if known == other {
			return
		}
	}
	related[word] = append(related[word], other)
}

const synonymList = `
create add make new generate build
add insert append attach put
create register open establish
delete remove erase drop clear discard destroy
remove uninstall detach unset
cancel abort revoke withdraw terminate
get fetch retrieve obtain read load receive
get show view display list look see
search find lookup query locate discover seek
find detect identify determine
list enumerate browse
update modify edit change alter revise adjust set
replace substitute swap
rename retitle
send post submit deliver transmit dispatch
send email mail
mail email inbox
message chat dm text sms
notify notification alert remind reminder
reply respond answer comment
buy purchase order shop
sell sale
order checkout
pay payment transfer charge
price cost fee rate quote
cheap budget affordable
book reserve reservation booking appointment
schedule plan calendar agenda appointment event meeting
meeting conference
start begin launch run open initiate
run execute exec invoke perform
stop end halt terminate kill shutdown quit
pause suspend
resume continue
close shut
cancel undo revert rollback
save store write persist keep record
write compose draft author
copy duplicate clone
move relocate transfer
merge combine join concatenate
split divide separate
convert transform translate change
translate translation translator
calculate compute calculation calc determine evaluate estimate
estimate predict forecast project
count number total quantity amount
sum total add
average mean
multiply product
divide division quotient
subtract difference minus
compare comparison versus difference diff
analyze analysis analyse examine assess evaluate inspect
check verify validate confirm inspect test
test trial
track monitor watch follow trace
measure metric
summarize summary abstract overview digest
recommend suggest suggestion recommendation advise advice
explain describe description
detail info information data
filter narrow
sort order rank arrange
top best rank
latest recent newest last current
history log record past
upload import
download export
import load
install setup
enable activate
disable deactivate
lock block
unlock unblock
login signin authenticate auth authentication logon
logout signout logoff
register signup enroll subscribe
unsubscribe leave
subscribe follow
share publish post
invite add
assign allocate delegate
approve accept confirm
reject decline deny refuse
upgrade update
fix repair resolve solve
solve resolve solution
improve optimize enhance
reduce decrease lower shrink minimize
increase raise boost maximize
draw plot paint render sketch
chart graph plot diagram visualization visualize
image picture photo photograph pic
photo camera
screenshot capture snapshot
video movie clip film
movie film cinema
song music track audio
audio sound voice
speech voice speak
play listen watch
picture draw
file document doc
document doc page
folder directory dir
path route location
delete trash
text string content
word term
repo repository codebase
commit changeset
branch fork
issue ticket bug defect
bug error fault problem
error exception failure
code source program script
script program
terminal shell console command cmd
command cmd
process task job
task todo job
todo task checklist
database db
table spreadsheet
row record entry
column field
query sql
spreadsheet excel xlsx xls workbook worksheet sheet
presentation powerpoint ppt pptx slide deck
word docx
website site web webpage page url
url link address uri
browser web chrome
internet web online
crawl scrape extract
scrape extract
extract parse pull
click press tap
type enter input fill
navigate goto visit open browse
user account member person people
account profile
customer client
employee staff worker personnel
contact person
friend buddy
company firm business corporation organization organisation enterprise
team group
doctor physician
patient person
hospital clinic
medicine drug medication
disease illness condition
symptom sign
weather forecast temperature climate
temperature heat thermostat
rain precipitation rainfall
location place position address
place venue spot
city town
country nation
map geography geocode
nearby near around close
distance far length
direction route navigation navigate
route path directions itinerary
travel trip journey tour vacation
trip itinerary
flight airline plane airfare
airport flight
hotel accommodation lodging room stay
house home property estate apartment
rent rental lease
car vehicle auto automobile
taxi cab ride uber
train rail railway
bus transit
restaurant dining food cafe eatery
food meal dish cuisine
recipe cook dish
drink beverage
stock share equity ticker
invest investment portfolio
currency exchange forex
money fund cash currency
bank account
loan mortgage credit
tax vat
profit gain return earnings
income salary wage earnings
revenue sales
crypto cryptocurrency bitcoin
news headline article
article post blog paper
paper publication research article
research study
book novel
author writer
review rating feedback opinion
rating score
score grade mark
game match
match fixture
player athlete
team club
exercise workout fitness training
student learner pupil
course class lesson
school university college
teacher instructor
date day time
time hour clock
today now current
year annual yearly
month monthly
week weekly
day daily
birthday birth
age old
clock alarm timer
alarm wake
size dimension
length size
width breadth
area surface
weight mass
speed velocity
color colour
language lang
random arbitrary
password credential passcode secret
key token
encrypt cipher encode
decrypt decode
permission access right role
security safety
config configuration setting preference option
setting option
env environment
app application
device gadget
phone mobile telephone
call dial phone
light lamp
turn switch toggle
server host
deploy release
container docker
kubernetes k8s
node vertex
edge link
graph network
network wifi internet
ip address
status state
version release
dependency package library
package library module
model ai
delivery shipping shipment
ship deliver
product item goods
cart basket
discount coupon promotion deal offer
refund return
invoice bill receipt
budget expense spending
contract agreement
job career position vacancy
resume cv
hire recruit
law legal
case lawsuit
crime criminal
ticket admission
event happening occasion
festival holiday
party gathering
museum gallery exhibition
art artwork painting
translate convert
equation formula
root zero
probability chance odds
statistics stats
energy power electricity
plant flower garden
animal pet
memory recall remember knowledge
note memo
entity node
relation relationship edge
observation fact
tag label
category type kind class
trend popular hot trending
sentiment emotion mood
image vision
ocr recognize
think reason reasoning
`

// pairs gives, per Chinese word, the English stems that may stand for it.
var pairs = sync.OnceValue(func() map[string][]string {
	related := map[string][]string{}
	for line := range strings.Lines(pairList) {
		words := strings.Fields(line)
		for i, chinese := range words {
			if chinese[0] < 0x80 {
				break
			}
			for _, english := range words[i+1:] {
				if english[0] < 0x80 {
					relate(related, chinese, stem(english))
				}
			}
		}
	}
	return related
})

// pairsBack gives, per English stem, the Chinese words.
var pairsBack = sync.OnceValue(func() map[string][]string {
	related := map[string][]string{}
	for line := range strings.Lines(pairList) {
		words := strings.Fields(line)
		for i, chinese := range words {
			if chinese[0] < 0x80 {
				break
			}
			for _, english := range words[i+1:] {
				if english[0] < 0x80 {
					relate(related, stem(english), chinese)
				}
			}
		}
	}
	return related
})

const pairList = `
创建 新建 建立 create new
添加 新增 增加 add
生成 制作 generate create make
删除 移除 清除 delete remove
取消 撤销 cancel
获取 获得 取得 get fetch
查看 显示 展示 view show get
查询 query search get
查找 寻找 找到 find search
搜索 检索 search
搜 search
列出 列表 list
更新 update
修改 更改 编辑 modify edit update change
设置 设定 set setting
替换 replace
发送 发 send
发布 发表 post publish
提交 submit commit
回复 reply
评论 comment
点赞 like
分享 share
通知 notification notify
提醒 reminder remind
消息 信息 message
短信 sms message
邮件 邮箱 电子邮件 email mail
购买 购物 买 buy purchase shopping
订单 order
下单 order
支付 付款 pay payment
转账 transfer
价格 price
费用 成本 cost fee expense
预订 预定 book reservation
预约 appointment book
日程 日历 schedule calendar
安排 计划 规划 schedule plan
会议 meeting
活动 事件 event activity
开始 启动 start
运行 执行 run execute
停止 结束 stop end
暂停 pause
继续 恢复 resume
打开 开启 open
关闭 close off
保存 存储 save store
写入 写 write
读取 阅读 读 read
复制 copy
移动 move
合并 merge
拆分 分割 split
转换 convert
翻译 translate translation
计算 calculate compute
计算器 calculator
预测 预报 forecast predict
估算 估计 estimate
统计 statistics count
数量 number quantity count
平均 average
比较 对比 compare
分析 analyze analysis
检查 check
验证 校验 verify validate
测试 test
检测 detect detection
跟踪 追踪 track
监控 监测 monitor
评估 evaluate assess
总结 摘要 概要 summary summarize
推荐 recommend recommendation
建议 advice suggest
解释 explain
描述 description describe
详情 详细 detail info
数据 data
过滤 筛选 filter
排序 sort
排名 排行 rank ranking
热门 热搜 hot trending popular
趋势 trend
最新 latest recent
历史 history
记录 record log
日志 log
上传 upload
下载 download
导入 import
导出 export
安装 install
启用 enable
禁用 disable
登录 登陆 login
注册 register
注销 退出 logout
密码 password
账户 账号 account
用户 user
成员 会员 member
头像 avatar
群 群组 group
客户 customer client
员工 employee
联系人 contact
朋友 好友 friend
公司 企业 company
团队 team
部门 department
组织 organization
医生 doctor
医院 hospital
患者 病人 patient
药物 药品 药 drug medicine medication
疾病 disease
症状 symptom
健康 health
诊断 diagnosis
睡眠 sleep
运动 锻炼 健身 exercise sport workout fitness
饮食 diet
营养 nutrition
食物 食品 food
食谱 菜谱 recipe
餐厅 饭店 餐馆 restaurant
外卖 delivery food
饮料 drink
咖啡 coffee
天气 气象 weather
气温 温度 temperature
降雨 下雨 rain precipitation
湿度 humidity
空气 air
质量 quality
气候 climate
地震 earthquake
位置 地点 location place
地址 address
城市 city
国家 country
地区 区域 region area
地图 map
附近 周边 nearby around
距离 distance
路线 route
导航 navigation direction
驾车 开车 driving
步行 walking
骑行 cycling
交通 traffic transport
旅行 旅游 出行 travel trip tour
行程 itinerary trip
景点 attraction
航班 机票 flight
机场 airport
火车 列车 train
车票 火车票 ticket train
高铁 train railway
车站 站点 station
地铁 subway metro
公交 bus
出租车 打车 taxi
汽车 车辆 car vehicle
酒店 宾馆 hotel
房间 room
房屋 房子 住房 house
房产 房地产 property estate
租金 租房 租赁 rent rental
股票 stock
股价 stock price
基金 fund
投资 invest investment
汇率 exchange rate
货币 currency
金融 财务 finance financial
银行 bank
贷款 loan
利率 利息 interest rate
税 税收 税务 tax
利润 profit
收入 income revenue
工资 薪资 salary
预算 budget
发票 invoice
保险 insurance
新闻 资讯 news
文章 article
论文 paper
研究 research
图书 书籍 书 book
小说 novel fiction
作者 author
作品 work
评价 评分 review rating
游戏 game
比赛 赛事 match
比分 得分 score
球队 team
球员 player
足球 football soccer
篮球 basketball
学生 student
学习 study learn learning
课程 course
学校 school
大学 university
老师 教师 teacher
考试 exam
成绩 grade score
教育 education
问题 question issue problem
答案 回答 answer
日期 date
时间 time
时区 timezone
今天 today
明天 tomorrow
当前 现在 current now
年 year
月 month
天 day
小时 hour
生日 birthday
年龄 age
农历 lunar
节日 假期 holiday festival
闹钟 alarm
定时 计时 timer
大小 尺寸 size
长度 length
宽度 width
高度 身高 height
面积 area
体积 volume
重量 体重 weight
速度 speed
颜色 color
语言 language
随机 random
文件 file
文件夹 目录 folder directory
路径 path
文档 document
表格 表 table sheet
电子表格 spreadsheet excel
工作表 sheet worksheet
单元格 cell
行 row
列 column
幻灯片 演示文稿 presentation slide
文本 文字 text
内容 content
标题 title
段落 paragraph
图片 图像 图 image picture
照片 相片 photo
截图 截屏 screenshot
图表 chart graph
折线图 line chart
柱状图 bar column chart
饼图 pie chart
词云 word cloud
视频 video
电影 影片 movie film
电视 tv television
音乐 music
歌曲 歌 song
歌手 singer artist
专辑 album
播放 play
音频 audio
语音 声音 voice speech
设备 device
手机 phone mobile
电话 phone call
灯 灯光 light
空调 air conditioner
窗帘 curtain
开关 switch
智能 smart
家居 家庭 home
网站 网页 website web page
链接 网址 link url
浏览器 browser
点击 click
输入 input
抓取 爬取 crawl scrape fetch
提取 extract
解析 parse
网络 network
互联网 internet
服务器 server
服务 service
代码 code
仓库 repository
分支 branch
拉取 pull
推送 push
数据库 database
表单 form
命令 command
终端 terminal shell
进程 process
任务 task
待办 todo
项目 project
版本 version
部署 deploy
容器 container
集群 cluster
配置 configuration config
权限 permission
安全 security
加密 encrypt
解密 decrypt
证书 certificate
错误 error
状态 status
类型 type
类别 分类 category
标签 tag label
模型 model
知识 knowledge
记忆 memory
笔记 note
实体 entity
关系 relation relationship
产品 商品 product item
库存 inventory stock
购物车 cart
优惠 折扣 discount
优惠券 coupon
促销 promotion
退款 refund
退货 return
物流 logistics
快递 包裹 express parcel package
配送 发货 运输 delivery shipping
供应商 supplier
供应链 supply chain
市场 market
营销 marketing
销售 sales
广告 advertisement ad
合同 contract
职位 岗位 工作 job position
招聘 recruit job
简历 resume
法律 law legal
案件 案例 case
犯罪 crime
门票 票 ticket
音乐会 演唱会 concert
展览 exhibition
博物馆 museum
艺术 art
绘画 画 painting draw
设计 design
文化 culture cultural
语法 grammar
词典 字典 dictionary
单词 word
方程 方程式 equation
公式 formula
函数 function
矩阵 matrix
概率 probability
数学 math
物理 physics
化学 chemistry
生物 biology
基因 gene
蛋白质 protein
实验 experiment
科学 science
能源 能量 energy
电力 电 power electricity
环境 environment
污染 pollution
植物 plant
动物 animal
宠物 pet
农业 agriculture
作物 crop
土壤 soil
水 water
火山 volcano
海洋 ocean marine
太空 空间 space
卫星 satellite
飞机 aircraft plane
船 船舶 ship vessel
机器人 robot
情感 情绪 sentiment emotion
社交 social
媒体 media
博客 blog
用药 medication
模拟 仿真 simulate simulation
优化 optimize
管理 manage management
控制 control
报告 report
策略 strategy
方案 plan
风险 risk
性能 performance
效率 efficiency
影响 impact effect
`
